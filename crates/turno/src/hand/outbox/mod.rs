//! What tasks print, on its way to the broker or into files.

mod attempt;
mod core;
mod roll;
#[cfg(test)]
mod tests;
