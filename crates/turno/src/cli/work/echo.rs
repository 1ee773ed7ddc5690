//! The worker without a program.

use turno_client::{Delivery, Message, Outcome};

/// Headers and body as they came.
pub(super) fn reply(delivery: Delivery) -> Outcome {
    Outcome::Reply(Message::new(delivery.body).headers(delivery.headers))
}
