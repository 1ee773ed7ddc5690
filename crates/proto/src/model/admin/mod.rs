//! Admin calls and their answers: one map in, one map out.

mod answer;
mod call;

pub use answer::AdminAnswer;
pub use call::AdminCall;
