//! What the two programs share: `turno-steps` counts the instructions of it, `turno-bench` measures its time.

pub mod publications;
