//! Limits on what ZeroMQ peers send.

/// Bytes of a ZMTP command, subscriptions included, and of everything in the handshake. Longer: closed, `bad_zmtp`; nothing is
/// allocated for it.
pub const ZMTP_COMMAND_BYTES_MAX: usize = 4 * 1024;
/// Frames of one ZMTP message: its parts and its envelope. More: closed, `too_many_parts`.
pub const ZMTP_FRAMES_MAX: usize = super::MESSAGE_PARTS_MAX + ZMQ_ENVELOPE_FRAMES_MAX;
/// Frames of the envelope of a ZeroMQ request, the empty one included. More: dropped, and counted.
pub const ZMQ_ENVELOPE_FRAMES_MAX: usize = 8;
/// Bytes of that envelope. More: dropped, and counted.
pub const ZMQ_ENVELOPE_BYTES_MAX: usize = 1_024;
/// Messages of a PUSH socket that are not stored yet. More: the broker stops reading from it until half of them are.
pub const ZMQ_UNSTORED_MAX: usize = 1_000;
/// Services that one client of Majordomo may name. More: dropped, and counted.
pub const MDP_SERVICES_MAX: usize = 1_000;
/// Time between two heartbeats of Majordomo; a worker that says nothing for [`LIVENESS`](super::LIVENESS) times as long is
/// closed, `peer_silent`.
pub const MDP_HEARTBEAT_MS: u32 = 2_500;
/// Bytes of the id of an LMQ message. More: dropped, and counted.
pub const LMQ_ID_BYTES_MAX: usize = 255;
/// Workers of LMQ, by their addresses, that register over one connection. More: the one that deregistered first is forgotten, and
/// its requests go to other workers; if none did, REGISTER is refused.
pub const LMQ_WORKERS_MAX: usize = 1_000;
/// Peers of one endpoint that are shown. More: counted.
pub const ZMQ_PEERS_SHOWN: usize = 100;
/// Endpoints for ZeroMQ. More: refused when the configuration is read.
pub const ZMQ_ENDPOINTS_MAX: usize = 100;
/// Slots of DEALER and ROUTER workers and of PULL sockets, unless the endpoint says otherwise.
pub const ZMQ_SLOTS: u32 = 10;
