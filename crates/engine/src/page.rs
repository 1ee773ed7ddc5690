//! One page of a listing, with limits on its rows and its work.

use turno_proto::model::limits::{PAGE_MAX, PAGE_WORK};

/// The rows of a page, and whether others follow. `work` is what a row looks at; a page has at least one row.
pub(crate) fn page<T, R>(
    rows: impl Iterator<Item = T>,
    limit: u32,
    work: impl Fn(&T) -> usize,
    mut view: impl FnMut(T) -> R,
) -> (Vec<R>, bool) {
    let limit = limit.clamp(1, PAGE_MAX) as usize;
    let (mut page, mut spent) = (Vec::new(), 0_usize);
    for row in rows {
        if page.len() == limit || spent >= PAGE_WORK {
            return (page, true);
        }
        spent = spent.saturating_add(1 + work(&row));
        page.push(view(row));
    }
    (page, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_ends_with_its_rows_or_its_work() {
        let of = |rows: std::ops::Range<usize>, limit, work: usize| page(rows, limit, |_| work, |row| row);
        assert_eq!(of(0..3, 5, 1), (vec![0, 1, 2], false));
        assert_eq!(of(0..3, 3, 1), (vec![0, 1, 2], false));
        assert_eq!(of(0..3, 2, 1), (vec![0, 1], true));
        assert_eq!(of(0..3, 0, 1), (vec![0], true), "at least one");
        assert_eq!(of(0..3, 5, PAGE_WORK), (vec![0], true), "however much it is");
        assert_eq!(of(0..9, 9, PAGE_WORK / 2), (vec![0, 1], true));
        assert_eq!(of(0..9, 9, usize::MAX - 1), (vec![0], true));
        assert_eq!(of(0..5_000, u32::MAX, 0).0.len(), PAGE_MAX as usize);
    }
}
