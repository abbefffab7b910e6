//! What nodes have promised, and would have after some moves: what is compared to find the next one. No I/O.

use corpus_api::moves::{Promise, Promised};
use corpus_domain::{Bytes, Environment, GuestId, Room};
use uuid::Uuid;

use crate::store::proposals::Load;

/// Nodes are uneven where one has promised so much more than another one, in thousandths of what each can promise.
const UNEVEN: u64 = 200;

/// Nodes as they would be after the moves that were found so far.
#[derive(Debug, Clone)]
pub struct Plan {
    nodes: Vec<Planned>,
    moved: Vec<Uuid>,
}

/// A node, with what came to it by the plan.
#[derive(Debug, Clone)]
pub struct Planned {
    /// The node as it would be.
    pub load: Load,
    /// What it can promise to others still, as it is now: what leaves it is there until it has left.
    free: Room,
    /// What would come to it.
    coming: Room,
    guests: u64,
}

impl Planned {
    /// What is asked for so that it has room for all that would come to it and for one more; none where it has not.
    pub fn needed(&self, more: Room) -> Option<Room> {
        let needed = plus(self.coming, more);
        let fits = self.guests < self.load.slots && self.free.holds(needed) > 0;
        fits.then_some(needed)
    }

    fn fill(&self, promise: Promise) -> u64 {
        let [promised, can] = [self.load.promised, self.load.can].map(|room| u128::from(amount(room, promise)));
        u64::try_from(promised.saturating_mul(1_000).checked_div(can).unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// What it would have promised, in percent.
    pub fn promised(&self) -> Promised {
        let percent = |promise| u32::try_from(self.fill(promise) / 10).unwrap_or(u32::MAX);
        Promised { memory: percent(Promise::Memory), storage: percent(Promise::Storage), cpu: percent(Promise::Cpu) }
    }
}

/// So much of one thing.
pub const fn amount(of: Room, promise: Promise) -> u64 {
    match promise {
        Promise::Memory => of.memory.0,
        Promise::Storage => of.storage.0,
        Promise::Cpu => of.cpu_millis,
    }
}

fn plus(one: Room, other: Room) -> Room {
    Room {
        memory: Bytes(one.memory.0.saturating_add(other.memory.0)),
        cpu_millis: one.cpu_millis.saturating_add(other.cpu_millis),
        storage: Bytes(one.storage.0.saturating_add(other.storage.0)),
    }
}

impl Plan {
    /// Without any move.
    pub fn new(nodes: Vec<Load>) -> Self {
        let planned = |load: Load| {
            let free = load.can.without(load.promised).without(load.leaving);
            Planned { load, free, coming: Room::default(), guests: 0 }
        };
        Self { nodes: nodes.into_iter().map(planned).collect(), moved: Vec::new() }
    }

    /// A node by its place.
    pub fn node(&self, place: usize) -> Option<&Planned> {
        self.nodes.get(place)
    }

    /// The guests that it moves.
    pub fn moved(&self) -> &[Uuid] {
        &self.moved
    }

    /// Whether no two nodes of an environment are uneven.
    pub fn is_even(&self) -> bool {
        Environment::ALL.iter().all(|of| Promise::ALL.iter().all(|promise| self.spread(*of, *promise) < UNEVEN))
    }

    fn of(&self, environment: Environment) -> impl Iterator<Item = (usize, &Planned)> {
        self.nodes.iter().enumerate().filter(move |(_, node)| node.load.environments.contains(&environment))
    }

    /// How much more the fullest has promised than the emptiest.
    fn spread(&self, environment: Environment, promise: Promise) -> u64 {
        let fills = || self.of(environment).map(|(_, node)| node.fill(promise));
        fills().max().unwrap_or(0) - fills().min().unwrap_or(0)
    }

    /// Nodes of an environment that are uneven: the fullest with the emptiest first, then with others.
    pub fn pairs(&self, environment: Environment, promise: Promise) -> Vec<(usize, usize)> {
        let mut all: Vec<(u64, usize)> =
            self.of(environment).map(|(place, node)| (node.fill(promise), place)).collect();
        all.sort_unstable();
        let uneven = |(full, from): &(u64, usize)| {
            let (full, from) = (*full, *from);
            all.iter().take_while(move |(fill, _)| fill + UNEVEN <= full).map(move |(_, to)| (from, *to))
        };
        all.iter().rev().flat_map(uneven).collect()
    }

    /// What may be moved between two nodes at most: with more, the one that it comes to would be the fuller one.
    pub fn most(&self, (from, to): (usize, usize), promise: Promise) -> u64 {
        let of = |place| {
            let load = self.node(place).map(|node| (node.load.promised, node.load.can)).unwrap_or_default();
            (u128::from(amount(load.0, promise)), u128::from(amount(load.1, promise)))
        };
        let ((from_has, from_can), (to_has, to_can)) = (of(from), of(to));
        let more = (from_has * to_can).saturating_sub(to_has * from_can);
        u64::try_from(more.checked_div(from_can + to_can).unwrap_or(0)).unwrap_or(u64::MAX)
    }

    /// The plan with one more guest moved; none if what comes before that in importance gets uneven by it, or more so.
    pub fn with(
        &self,
        (from, to): (usize, usize),
        (guest, size): (GuestId, Room),
        (environment, promise): (Environment, Promise),
    ) -> Option<Self> {
        let mut after = self.clone();
        let source = after.nodes.get_mut(from)?;
        source.load.promised = source.load.promised.without(size);
        let target = after.nodes.get_mut(to)?;
        target.load.promised = plus(target.load.promised, size);
        target.coming = plus(target.coming, size);
        target.guests += 1;
        after.moved.push(guest.0);
        let mut before = Promise::ALL.into_iter().take_while(|one| *one != promise);
        let stays = |one| {
            let spread = after.spread(environment, one);
            spread < UNEVEN || spread <= self.spread(environment, one)
        };
        before.all(stays).then_some(after)
    }
}

#[cfg(test)]
mod tests {
    use corpus_domain::NodeId;

    use super::*;

    const GIB: u64 = 1 << 30;

    fn room(memory: u64, cpu_millis: u64, storage: u64) -> Room {
        Room { memory: Bytes(memory * GIB), cpu_millis, storage: Bytes(storage * GIB) }
    }

    fn node(number: u128, environments: &[Environment], promised: Room) -> Load {
        Load {
            id: NodeId(Uuid::from_u128(number)),
            address: format!("192.0.2.{number}").parse().unwrap(),
            name: None,
            environments: environments.to_vec(),
            makes: Vec::new(),
            can: room(100, 100, 100),
            promised,
            leaving: Room::default(),
            slots: 2,
        }
    }

    const DEV: &[Environment] = &[Environment::Dev];
    const OF: (Environment, Promise) = (Environment::Dev, Promise::Memory);
    const GUEST: GuestId = GuestId(Uuid::from_u128(7));

    #[test]
    fn nodes_are_compared_with_those_of_their_environment() {
        let even = Plan::new(vec![node(1, DEV, room(59, 0, 0)), node(2, DEV, room(40, 0, 0))]);
        assert!(even.is_even() && even.pairs(OF.0, OF.1).is_empty());
        let others = Plan::new(vec![node(1, DEV, room(90, 0, 0)), node(2, &[Environment::Prod], Room::default())]);
        assert!(others.is_even());
        let loads = [60, 80, 40].into_iter().zip(1..).map(|(has, number)| node(number, DEV, room(has, 0, 0)));
        let uneven = Plan::new(loads.collect());
        assert!(!uneven.is_even());
        assert_eq!(uneven.pairs(OF.0, OF.1), [(1, 2), (1, 0), (0, 2)], "the fullest with the emptiest first");
    }

    #[test]
    fn no_more_goes_than_makes_them_equal() {
        let mut large = node(2, DEV, room(50, 0, 0));
        large.can = room(300, 300, 300);
        let plan = Plan::new(vec![node(1, DEV, room(90, 0, 0)), large]);
        assert_eq!(plan.most((0, 1), Promise::Memory), 55 * GIB, "35 of 100, and 105 of 300");
        assert_eq!(plan.most((1, 0), Promise::Memory), 0);
        let after = plan.with((0, 1), (GUEST, room(55, 0, 0)), OF).unwrap();
        let told = [0, 1].map(|place| after.node(place).unwrap().promised().memory);
        assert_eq!((told, after.moved()), ([35, 35], &[GUEST.0][..]));
    }

    #[test]
    fn what_comes_first_stays_even() {
        let plan = Plan::new(vec![node(1, DEV, room(50, 0, 90)), node(2, DEV, room(40, 0, 10))]);
        let of = (Environment::Dev, Promise::Storage);
        assert!(plan.with((0, 1), (GUEST, room(10, 0, 30)), of).is_some());
        assert!(plan.with((0, 1), (GUEST, room(20, 0, 30)), of).is_none(), "30 and 60 of memory");
        assert!(plan.with((0, 1), (GUEST, room(10, 90, 30)), of).is_some(), "processors come last");
    }

    /// What leaves a node is there until it has left; what would come to it is added up.
    #[test]
    fn room_is_what_is_free_now() {
        let mut target = node(2, DEV, room(10, 0, 0));
        target.leaving = room(30, 0, 0);
        let plan = Plan::new(vec![node(1, DEV, room(95, 0, 0)), target]);
        let needed = |plan: &Plan, size| plan.node(1).unwrap().needed(size);
        assert_eq!(needed(&plan, room(60, 1, 1)), Some(room(60, 1, 1)));
        assert_eq!(needed(&plan, room(61, 1, 1)), None);
        let one = plan.with((0, 1), (GUEST, room(20, 1, 1)), OF).unwrap();
        assert_eq!(needed(&one, room(40, 1, 1)), Some(room(60, 2, 2)));
        assert_eq!(needed(&one, room(41, 1, 1)), None);
        let two = one.with((0, 1), (GUEST, room(1, 1, 1)), OF).unwrap();
        assert_eq!(needed(&two, room(1, 1, 1)), None, "it has two slots");
    }
}
