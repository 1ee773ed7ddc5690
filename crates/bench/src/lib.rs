//! Code that the two programs share: `turno-steps` counts its instructions, `turno-bench` measures its time.

pub mod publications;
