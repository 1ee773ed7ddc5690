//! Jobs and the foreman's workers: what is said, and exactly what is said back.

mod farm;
mod store;

mod after;
mod cancel;
mod durable;
mod failures;
mod full_disk;
mod hello;
mod offer;
mod order;
mod property;
mod property_ops;
mod property_twin;
mod recover;
mod retry;
mod retry_disk;
mod submit;
mod twins;
mod update;
mod workers;
