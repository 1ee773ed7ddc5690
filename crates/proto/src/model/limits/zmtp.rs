//! Limits on what ZeroMQ peers send.

/// Bytes of a ZMTP command, subscriptions included, and of everything in the handshake. Longer: closed, `bad_zmtp`; nothing is
/// allocated for it.
pub const ZMTP_COMMAND_BYTES_MAX: usize = 4 * 1024;
/// Frames of one ZMTP message. More: closed, `too_many_parts`.
pub const ZMTP_PARTS_MAX: usize = 1_024;
