//! Labels: what a job's tasks need and what a hand has. A task goes only to a hand that has all labels of its job.

use turno_proto::model::limits::LABEL_BYTES_MAX;

/// Whether that can be a label.
pub(crate) fn is_label(key: &str, value: &str) -> bool {
    let is_short = |text: &str| text.len() <= LABEL_BYTES_MAX && !text.chars().any(char::is_control);
    !key.is_empty() && !key.contains('=') && is_short(key) && is_short(value)
}
