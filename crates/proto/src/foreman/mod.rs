//! The protocol between foreman and job workers. `docs/reference/protocol/job-worker.md` is its page for strangers; `vectors/foreman.txt`
//! holds golden bytes of every frame.
//!
//! [`Foreman`] and [`Worker`] are the two ends of a connection without its socket: bytes and commands of the owner go
//! in, bytes and events come out. Neither knows what a job is for, when it runs, or how its answer is kept.

mod body;
mod code;
mod counts;
mod decode;
mod encode;
mod end;
mod event;
mod foreman_end;
mod frame;
mod kind;
mod numbering;
mod request;
mod settings;
mod state;
mod table;
mod worker_end;

pub use body::{Hello, Running, StatusUpdate, Task, TaskFile, TaskPair, WireTaskId};
pub use code::ErrorCode;
pub use counts::{Counts, Stop};
pub use decode::{BadBody, ForemanPiece, decode, split};
pub use encode::encode;
pub use event::{CloseReason, ConnectionNote, ForemanAnswer, ForemanEvent, Outcome, RequestId, Ticket, WorkerEvent};
pub use foreman_end::Foreman;
pub use frame::ForemanFrame;
pub use kind::{ForemanKind, Role};
pub use settings::ForemanSettings;
pub use state::{ForemanState, WorkerEndState};
pub use worker_end::{TooManyProcs, Worker};
