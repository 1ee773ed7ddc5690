//! Admin calls and their answers: one MessagePack map each.

mod answer;
mod call;

pub use answer::AdminAnswer;
pub use call::AdminCall;
