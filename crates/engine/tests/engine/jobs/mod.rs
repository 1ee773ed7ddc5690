//! Jobs and the foreman's workers: what is said, and exactly what is said back.

mod farm;
mod store;

mod hello;
mod offer;
mod order;
mod submit;
mod update;
