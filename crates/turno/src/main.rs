//! The `turno` binary, a call of the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    turno::cli::main()
}
