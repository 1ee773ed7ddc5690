//! `turno work` without a program: each request is answered with its own body.

use turno_client::{Delivery, Message, Outcome};

/// Headers and body as they came.
pub(super) fn reply(delivery: Delivery) -> Outcome {
    Outcome::Reply(Message::new(delivery.body).headers(delivery.headers))
}
