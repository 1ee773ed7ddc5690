//! PLAIN: a user's name and password in clear text (24/ZMTP-PLAIN).

use super::command::{self, put_short, short};
use super::{ZmtpCredentials, ZmtpFault};

/// Appends HELLO.
pub(super) fn encode_hello(user: &[u8], password: &[u8], out: &mut Vec<u8>) {
    let mut data = Vec::new();
    put_short(user, &mut data);
    put_short(password, &mut data);
    command::encode("HELLO", &[&data], out);
}

/// Reads what HELLO shows.
pub(super) fn read_hello(data: &[u8]) -> Result<ZmtpCredentials, ZmtpFault> {
    let (user, rest) = short(data).ok_or(ZmtpFault::BadCommand)?;
    match short(rest) {
        Some((password, [])) => Ok(ZmtpCredentials::Plain { user: user.into(), password: password.into() }),
        _ => Err(ZmtpFault::BadCommand),
    }
}
