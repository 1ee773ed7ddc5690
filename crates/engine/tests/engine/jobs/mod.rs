//! Jobs and the foreman's workers: what is said, and exactly what is said back.

mod farm;
mod store;

mod after;
mod archive;
mod attempts;
mod cancel;
mod durable;
mod explain;
mod failures;
mod forget;
mod full_disk;
mod hello;
mod labels;
mod lists;
mod needs;
mod offer;
mod order;
mod pairs;
mod property;
mod property_judge;
mod property_pair;
mod recover;
mod retry;
mod retry_disk;
mod submit;
mod truth;
mod update;
mod views;
mod workers;
