//! The rota of a queue: workers in least-recently-used order, with a search for the first with free slots.
//!
//! Every member holds a leaf of a max-tree; leaves further right were used later. A member that is
//! used moves to a new leaf at the right end, and when that end is reached the members are packed to
//! the left in order. Busy members are skipped by the tree and keep their place, so waiting costs
//! nobody a turn.
//!
//! This module must never change free slots by itself (it knows no jobs), never walk over all members
//! to find one, and never hold memory while it is empty: most queues have no workers.

/// Free slots are what a worker may still be handed; `u32::MAX` stands for unlimited.
#[derive(Debug, Default)]
pub(in crate::messages) struct Rota {
    /// Node 1 is the root, node `n` has the children `2n` and `2n + 1`, and leaf `i` is the node
    /// `capacity + i`. A leaf holds the free slots of its member, 0 if vacant; an inner node holds the
    /// maximum below it.
    tree: Vec<u32>,
    /// The member at each leaf; its length is the capacity, a power of two or nothing.
    owners: Vec<u32>,
    /// The leaf of each member.
    positions: Vec<u32>,
    /// The first leaf of the vacant right end.
    end: usize,
    len: usize,
}

impl Rota {
    /// Puts a member that is not present at the bottom. Members are small dense numbers: the table is
    /// as long as the largest.
    pub(crate) fn insert(&mut self, member: u32, free: u32) {
        assert!(member != NONE && !self.contains(member), "a member enters the rota once");
        self.len += 1;
        self.append(member, free);
    }

    pub(in crate::messages) fn remove(&mut self, member: u32) {
        let leaf = self.leaf(member);
        self.positions[member as usize] = NONE;
        self.vacate(leaf);
        self.len -= 1;
        if self.len == 0 {
            *self = Self::default();
        } else if self.capacity() > CAPACITY_MIN && self.capacity() >= self.len * LEAVES_PER_MEMBER_MAX {
            self.pack();
        }
    }

    pub(in crate::messages) fn contains(&self, member: u32) -> bool {
        self.positions.get(member as usize).is_some_and(|&leaf| leaf != NONE)
    }

    /// The member's free slots; `to_bottom`: it was just used, so it goes to the bottom.
    #[inline]
    pub(in crate::messages) fn show(&mut self, member: u32, free: u32, to_bottom: bool) {
        if to_bottom {
            self.touch(member, free);
        } else {
            self.set_free(member, free);
        }
    }

    /// The member keeps its place.
    fn set_free(&mut self, member: u32, free: u32) {
        self.update(self.leaf(member), free);
    }

    pub(in crate::messages) fn free(&self, member: u32) -> u32 {
        self.tree[self.capacity() + self.leaf(member)]
    }

    /// The member was just used: it goes to the bottom, with that many free slots.
    fn touch(&mut self, member: u32, free: u32) {
        let leaf = self.leaf(member);
        if leaf + 1 == self.end {
            return self.update(leaf, free);
        }
        self.vacate(leaf);
        self.append(member, free);
    }

    /// The least recently used member with at least `cost` free slots. One way down the tree, however
    /// many members are busy.
    pub(in crate::messages) fn first_with(&self, cost: u32) -> Option<u32> {
        assert!(cost >= 1, "every job costs a slot, else a vacant leaf would do");
        if *self.tree.get(ROOT)? < cost {
            return None;
        }
        let (children, _) = self.tree.as_chunks::<2>();
        let mut node = ROOT;
        while node < self.capacity() {
            let [left, _] = children[node];
            node = 2 * node + usize::from(left < cost);
        }
        Some(self.owners[node - self.capacity()])
    }

    pub(in crate::messages) fn len(&self) -> usize {
        self.len
    }

    /// Members and their free slots, the least recently used first.
    pub(in crate::messages) fn iter(&self) -> impl Iterator<Item = (u32, u32)> {
        let leaves = self.tree.iter().skip(self.capacity());
        let pairs = self.owners.iter().zip(leaves).take(self.end);
        pairs.filter(|&(&member, _)| member != NONE).map(|(&member, &free)| (member, free))
    }

    /// Walks everything and asserts that tree, owners, positions and counts agree.
    pub(crate) fn check(&self) {
        let capacity = self.capacity();
        assert_eq!(self.tree.len(), 2 * capacity, "the tree has as many leaves as there are owners");
        if self.len == 0 {
            let held = self.tree.capacity() + self.owners.capacity() + self.positions.capacity();
            assert_eq!((held, self.end), (0, 0), "an empty rota holds no memory");
            return;
        }
        assert!(capacity.is_power_of_two() && capacity >= CAPACITY_MIN, "the tree is complete");
        assert!(self.end <= capacity, "the right end lies within the tree");
        for node in ROOT..capacity {
            let below = self.tree[2 * node].max(self.tree[2 * node + 1]);
            assert_eq!(self.tree[node], below, "an inner node holds the maximum below it");
        }
        let mut live = 0;
        for (leaf, &member) in self.owners.iter().enumerate() {
            if member == NONE {
                assert_eq!(self.tree[capacity + leaf], 0, "a vacant leaf has no free slots");
                continue;
            }
            assert!(leaf < self.end, "nobody is beyond the right end");
            assert_eq!(self.positions[member as usize] as usize, leaf, "a member knows its leaf");
            live += 1;
        }
        let placed = self.positions.iter().filter(|&&leaf| leaf != NONE).count();
        assert_eq!((live, placed), (self.len, self.len), "every member counted has one leaf");
    }
}

const ROOT: usize = 1;
const CAPACITY_MIN: usize = 4;
/// Three to six leaves for each member after packing: room for at least two turns of everybody
/// before the next packing, which makes its cost per turn a constant.
const LEAVES_PER_MEMBER: usize = 3;
/// So many that packing at least halves the tree.
const LEAVES_PER_MEMBER_MAX: usize = 4 * LEAVES_PER_MEMBER;
/// No member at a leaf, or no leaf of a member.
const NONE: u32 = u32::MAX;

impl Rota {
    fn capacity(&self) -> usize {
        self.owners.len()
    }

    fn leaf(&self, member: u32) -> usize {
        match self.positions.get(member as usize) {
            Some(&leaf) if leaf != NONE => leaf as usize,
            _ => panic!("only a member of the rota has a place in it"),
        }
    }

    fn append(&mut self, member: u32, free: u32) {
        if self.end == self.capacity() {
            self.pack();
        }
        let leaf = self.end;
        self.end += 1;
        self.owners[leaf] = member;
        if self.positions.len() <= member as usize {
            self.positions.resize(member as usize + 1, NONE);
        }
        self.positions[member as usize] = leaf as u32;
        self.update(leaf, free);
    }

    fn vacate(&mut self, leaf: usize) {
        self.owners[leaf] = NONE;
        self.update(leaf, 0);
    }

    fn update(&mut self, leaf: usize, free: u32) {
        let mut node = self.capacity() + leaf;
        let mut maximum = free;
        // Siblings lie side by side, so that one look finds both.
        let (children, _) = self.tree.as_chunks_mut::<2>();
        loop {
            let siblings = &mut children[node / 2];
            if std::mem::replace(&mut siblings[node % 2], maximum) == maximum || node == ROOT {
                return;
            }
            maximum = siblings[0].max(siblings[1]);
            node /= 2;
        }
    }

    /// Moves the members to the left in order, into a tree whose size fits `len` of them. A member on
    /// its way to the bottom is counted but has no leaf yet.
    fn pack(&mut self) {
        let capacity_old = self.capacity();
        let capacity = (self.len * LEAVES_PER_MEMBER).next_power_of_two().max(CAPACITY_MIN);
        assert!(capacity < NONE as usize, "there are fewer leaves than numbers for them");
        let mut kept = 0;
        let mut positions_len = 0;
        for leaf in 0..self.end {
            let member = self.owners[leaf];
            if member == NONE {
                continue;
            }
            self.owners[kept] = member;
            self.tree[capacity_old + kept] = self.tree[capacity_old + leaf];
            self.positions[member as usize] = kept as u32;
            positions_len = positions_len.max(member as usize + 1);
            kept += 1;
        }
        self.end = kept;
        self.owners.truncate(kept);
        self.owners.resize(capacity, NONE);
        if capacity == capacity_old {
            self.tree[capacity + kept..].fill(0);
        } else {
            let mut tree = vec![0; 2 * capacity];
            let leaves = &self.tree[capacity_old..capacity_old + kept];
            tree[capacity..capacity + kept].copy_from_slice(leaves);
            self.tree = tree;
            self.owners.shrink_to_fit();
            self.positions.truncate(positions_len);
            self.positions.shrink_to_fit();
        }
        for node in (ROOT..capacity).rev() {
            self.tree[node] = self.tree[2 * node].max(self.tree[2 * node + 1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rota(members: &[(u32, u32)]) -> Rota {
        let mut rota = Rota::default();
        for &(member, free) in members {
            rota.insert(member, free);
        }
        rota.check();
        rota
    }

    fn list(rota: &Rota) -> Vec<(u32, u32)> {
        rota.check();
        rota.iter().collect()
    }

    /// Does as a queue does with a message: choose, take the slots, send the worker to the bottom.
    fn hand_out(rota: &mut Rota, cost: u32) -> Option<u32> {
        let member = rota.first_with(cost)?;
        rota.touch(member, rota.free(member) - cost);
        Some(member)
    }

    /// S0.19: the least recently used worker is chosen for the next message.
    #[test]
    fn the_least_recently_used_comes_first() {
        let mut rota = rota(&[(2, 9), (0, 9), (1, 9)]);
        let chosen: Vec<_> = (0..7).filter_map(|_| hand_out(&mut rota, 1)).collect();
        assert_eq!(chosen, [2, 0, 1, 2, 0, 1, 2]);
    }

    /// S0.20: a worker with a free slot gets the message, has one slot less and goes to the bottom.
    #[test]
    fn the_chosen_one_pays_and_goes_to_the_bottom() {
        let mut rota = rota(&[(0, 1), (1, 2), (2, 3)]);
        assert_eq!(hand_out(&mut rota, 1), Some(0));
        assert_eq!(list(&rota), [(1, 2), (2, 3), (0, 0)]);
        assert_eq!(hand_out(&mut rota, 1), Some(1));
        assert_eq!(list(&rota), [(2, 3), (0, 0), (1, 1)]);
    }

    /// S0.21: a worker without free slots is passed over for the next one, and keeps its place.
    #[test]
    fn the_busy_are_passed_over_in_place() {
        // (cost, expected choice): the first in order with room enough
        for (cost, choice) in [(1, 1), (2, 1), (3, 3), (5, 3), (6, 4), (u32::MAX, 4)] {
            let members = [(0, 0), (1, 2), (2, 0), (3, 5), (4, u32::MAX), (5, 7)];
            let mut rota = rota(&members);
            assert_eq!(rota.first_with(cost), Some(choice), "cost {cost}");
            assert_eq!(list(&rota), members, "looking changes nothing");
            rota.touch(choice, rota.free(choice));
            rota.set_free(0, u32::MAX);
            assert_eq!(rota.first_with(cost), Some(0), "freed again, it is first as before");
        }
    }

    /// S0.22: when nobody has room the search ends after one bounded pass, with nobody chosen.
    #[test]
    fn a_search_among_the_busy_ends() {
        assert_eq!(Rota::default().first_with(1), None);
        let busy: Vec<_> = (0..10_000).map(|member| (member, 0)).collect();
        let mut rota = rota(&busy);
        for _ in 0..10_000 {
            assert_eq!(hand_out(&mut rota, 1), None);
        }
        assert_eq!(list(&rota), busy);
        rota.set_free(7_777, 3);
        assert_eq!(rota.first_with(4), None);
        assert_eq!(rota.first_with(3), Some(7_777));
    }

    /// S0.23: the table lists all workers with their free slots.
    #[test]
    fn all_members_are_listed_with_their_free_slots() {
        assert_eq!(list(&Rota::default()), []);
        let mut rota = rota(&[(3, 0), (1, 4), (0, u32::MAX)]);
        assert_eq!(list(&rota), [(3, 0), (1, 4), (0, u32::MAX)]);
        rota.remove(1);
        rota.set_free(3, 2);
        assert_eq!(list(&rota), [(3, 2), (0, u32::MAX)]);
        assert_eq!((rota.len(), rota.contains(1), rota.contains(3)), (2, false, true));
    }

    /// S0.19, S0.20: the turns go round fairly for as long as one likes, in a tree that does not grow.
    #[test]
    fn thousands_of_turns_keep_order_and_size() {
        for count in [1, 2, 5, 16, 100] {
            let members: Vec<_> = (0..count).map(|member| (member, 1)).collect();
            let mut rota = rota(&members);
            let capacity = CAPACITY_MIN.max(2 * LEAVES_PER_MEMBER * rota.len());
            for turn in 0..5_000 {
                let member = turn % count;
                assert_eq!(rota.first_with(1), Some(member));
                rota.touch(member, 1);
            }
            rota.check();
            assert!(rota.capacity() <= capacity, "{count} members");
        }
    }

    #[test]
    fn memory_follows_the_members() {
        let members: Vec<_> = (0..1_000).map(|member| (member, member)).collect();
        let mut rota = rota(&members);
        assert!(rota.capacity() >= 1_000);
        for member in (3..1_000).rev() {
            rota.remove(member);
            assert!(rota.capacity() <= CAPACITY_MIN.max(rota.len() * LEAVES_PER_MEMBER_MAX));
        }
        assert_eq!(list(&rota), [(0, 0), (1, 1), (2, 2)]);
        assert!(rota.positions.capacity() < 100);
        for member in 0..3 {
            rota.remove(member);
        }
        rota.check();
        rota.insert(5, 1);
        assert_eq!(list(&rota), [(5, 1)]);
    }

    #[test]
    #[should_panic(expected = "a member enters the rota once")]
    fn inserting_twice_is_a_bug_of_the_caller() {
        rota(&[(1, 1), (1, 1)]);
    }

    #[test]
    #[should_panic(expected = "only a member of the rota has a place in it")]
    fn touching_a_stranger_is_a_bug_of_the_caller() {
        rota(&[(1, 1)]).touch(0, 1);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(u32, u32),
        Remove(prop::sample::Index),
        /// All but one leave at once.
        Shrink,
        SetFree(prop::sample::Index, u32),
        Touch(prop::sample::Index),
        /// That many turns of the first worker.
        Turn(usize),
    }

    fn free() -> impl Strategy<Value = u32> {
        prop_oneof![4 => 0u32..5, 1 => Just(u32::MAX), 1 => any::<u32>()]
    }

    fn step() -> impl Strategy<Value = Step> {
        let index = any::<prop::sample::Index>;
        prop_oneof![
            60 => (0u32..80, free()).prop_map(|(member, free)| Step::Insert(member, free)),
            20 => index().prop_map(Step::Remove),
            1 => Just(Step::Shrink),
            40 => (index(), free()).prop_map(|(index, free)| Step::SetFree(index, free)),
            40 => index().prop_map(Step::Touch),
            4 => (0usize..300).prop_map(Step::Turn),
        ]
    }

    fn apply(rota: &mut Rota, model: &mut Vec<(u32, u32)>, step: Step) {
        match step {
            Step::Insert(member, free) => {
                if !rota.contains(member) {
                    rota.insert(member, free);
                    model.push((member, free));
                }
            }
            _ if model.is_empty() => {}
            Step::Remove(index) => rota.remove(model.remove(index.index(model.len())).0),
            Step::Shrink => model.drain(1..).for_each(|(member, _)| rota.remove(member)),
            Step::SetFree(index, free) => {
                let entry = index.get_mut(model);
                rota.set_free(entry.0, free);
                entry.1 = free;
            }
            Step::Touch(index) => {
                let entry = model.remove(index.index(model.len()));
                rota.touch(entry.0, entry.1);
                model.push(entry);
            }
            Step::Turn(turns) => {
                for _ in 0..turns {
                    let entry = model.remove(0);
                    rota.touch(entry.0, entry.1);
                    model.push(entry);
                }
            }
        }
    }

    proptest! {
        /// S0.19, S0.20, S0.21, S0.22, S0.23: order, choice and list are those of a plain list.
        #[test]
        fn agrees_with_a_plain_list(steps in prop::collection::vec(step(), 1..300)) {
            let mut rota = Rota::default();
            let mut model = Vec::new();
            for step in steps {
                apply(&mut rota, &mut model, step);
                prop_assert_eq!(&list(&rota), &model);
                prop_assert_eq!(rota.len(), model.len());
                for cost in [1, 2, 4, 1_000_000, u32::MAX] {
                    let first = model.iter().find(|&&(_, free)| free >= cost);
                    prop_assert_eq!(rota.first_with(cost), first.map(|&(member, _)| member));
                }
                for member in 0..80 {
                    let entry = model.iter().find(|&&(other, _)| other == member);
                    prop_assert_eq!(rota.contains(member), entry.is_some());
                    if let Some(&(_, free)) = entry {
                        prop_assert_eq!(rota.free(member), free);
                    }
                }
            }
        }
    }
}
