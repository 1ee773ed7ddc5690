//! Code that the project's commands and its benchmark share.
#![expect(clippy::print_stdout, reason = "a command-line tool")]

pub mod packages;

/// A number with commas between its thousands: 1,234,567.
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
