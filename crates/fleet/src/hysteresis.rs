//! When a node counts as unreachable: not at the first missed reading, and not for ever.

use corpus_domain::Reachability;

/// What became of one reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sign {
    /// The agent answered.
    Answered,
    /// It did not, for whatever reason.
    Missed,
    /// The host shows another key.
    HostKeyChanged,
}

/// The reachability of a node from the last few signs.
#[derive(Debug, Clone)]
pub struct Hysteresis {
    down_after: u32,
    up_after: u32,
    state: Reachability,
    in_a_row: u32,
    last: Option<Sign>,
}

impl Default for Hysteresis {
    /// Unreachable after three misses, reachable again after two answers.
    fn default() -> Self {
        Self::new(3, 2)
    }
}

impl Hysteresis {
    /// Unreachable after `down_after` misses in a row, reachable again after `up_after` answers;
    /// the first contact of all counts at once.
    pub fn new(down_after: u32, up_after: u32) -> Self {
        Self {
            down_after: down_after.max(1),
            up_after: up_after.max(1),
            state: Reachability::Unknown,
            in_a_row: 0,
            last: None,
        }
    }

    /// What is believed now.
    pub fn state(&self) -> Reachability {
        self.state
    }

    /// Takes a sign; tells whether the state changed.
    pub fn observe(&mut self, sign: Sign) -> bool {
        self.in_a_row = if self.last == Some(sign) { self.in_a_row.saturating_add(1) } else { 1 };
        self.last = Some(sign);
        let before = self.state;
        self.state = match sign {
            Sign::HostKeyChanged => Reachability::HostKeyChanged,
            Sign::Answered if before == Reachability::Unknown || self.in_a_row >= self.up_after => {
                Reachability::Reachable
            }
            Sign::Missed if self.in_a_row >= self.down_after => Reachability::Unreachable,
            _ => before,
        };
        self.state != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_misses_are_forgiven() {
        let mut node = Hysteresis::default();
        assert!(node.observe(Sign::Answered));
        for _ in 0..10 {
            assert!(!node.observe(Sign::Missed));
            assert!(!node.observe(Sign::Missed));
            assert!(!node.observe(Sign::Answered));
        }
        assert!(!node.observe(Sign::Missed) && !node.observe(Sign::Missed) && node.observe(Sign::Missed));
        assert_eq!(node.state(), Reachability::Unreachable);
        // A line that flaps does not make the page flap.
        for _ in 0..10 {
            assert!(!node.observe(Sign::Answered) && !node.observe(Sign::Missed));
        }
        assert!(!node.observe(Sign::Answered) && node.observe(Sign::Answered));
        assert!(node.observe(Sign::HostKeyChanged));
        assert!(!node.observe(Sign::HostKeyChanged));
    }

    fn signs() -> impl Strategy<Value = Vec<Sign>> {
        prop::collection::vec(prop_oneof![Just(Sign::Answered), Just(Sign::Missed), Just(Sign::HostKeyChanged)], 1..60)
    }

    proptest! {
        #[test]
        fn the_state_is_what_the_last_signs_say(signs in signs(), down in 1_u32..5, up in 1_u32..4) {
            let mut node = Hysteresis::new(down, up);
            let mut before = Reachability::Unknown;
            for at in 0..signs.len() {
                let changed = node.observe(signs[at]);
                prop_assert_eq!(changed, node.state() != before);
                let row = signs[..=at].iter().rev().take_while(|sign| **sign == signs[at]).count();
                let expected = match signs[at] {
                    Sign::HostKeyChanged => Reachability::HostKeyChanged,
                    Sign::Answered if row >= up as usize || before == Reachability::Unknown => Reachability::Reachable,
                    Sign::Missed if row >= down as usize => Reachability::Unreachable,
                    _ => before,
                };
                prop_assert_eq!(node.state(), expected);
                before = node.state();
            }
        }
    }
}
