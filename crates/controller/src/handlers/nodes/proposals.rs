//! Moves that would even out what nodes have promised: found one after the other, each as if those before it were made.
//! Whether a node takes a guest is asked as when one is placed.

mod plan;

use corpus_api::moves::{Promise, ProposeMoves, ProposedMove, ProposedMoves, ProposedNode};
use corpus_domain::{Environment, GuestState, Room};
use corpus_gate::{Handle, Permit, Result};
use sqlx::PgConnection;

use self::plan::{Plan, Planned};
use crate::Controller;
use crate::store::proposals::{self, Candidate, Sought};
use crate::store::{move_times, room};

/// As many are proposed.
const MOST: usize = 10;
/// So often guests of a node are looked for, and so often it is asked whether a node takes one, for one answer.
const LOOKS: usize = 40;

impl Handle<ProposeMoves> for Controller {
    async fn handle(&self, permit: Permit<ProposeMoves>) -> Result<ProposedMoves> {
        let mut conn = permit.connection().await?;
        let plan = Plan::new(proposals::loads(&mut conn).await?);
        let even = plan.is_even();
        let mut search = Search { plan, found: Vec::new(), looks: LOOKS, asked: LOOKS };
        for promise in Promise::ALL {
            for environment in Environment::ALL.iter().copied() {
                while search.goes_on() && search.one(&mut conn, environment, promise).await? {}
            }
        }
        Ok(ProposedMoves { items: search.found, even })
    }
}

/// What was found so far, and how much may be looked at still.
struct Search {
    plan: Plan,
    found: Vec<ProposedMove>,
    looks: usize,
    asked: usize,
}

impl Search {
    fn goes_on(&self) -> bool {
        self.found.len() < MOST && self.looks > 0 && self.asked > 0
    }

    /// Finds one more move of an environment's guests. Tells whether there is one.
    async fn one(&mut self, conn: &mut PgConnection, environment: Environment, promise: Promise) -> Result<bool> {
        for pair @ (from, to) in self.plan.pairs(environment, promise) {
            let (Some(source), Some(target)) = (self.plan.node(from), self.plan.node(to)) else { continue };
            if self.looks == 0 {
                return Ok(false);
            }
            self.looks -= 1;
            let sought = Sought {
                environment,
                from: &source.load,
                to: &target.load,
                promise,
                most: self.plan.most(pair, promise),
                without: self.plan.moved(),
            };
            for guest in proposals::candidates(&mut *conn, sought).await? {
                let Some(after) = self.plan.with(pair, (guest.id, guest.needed), (environment, promise)) else {
                    continue;
                };
                if !takes(&mut *conn, (source, target), &guest, environment, &mut self.asked).await? {
                    continue;
                }
                let (Some(source_after), Some(target_after)) = (after.node(from), after.node(to)) else { continue };
                let downtime = match guest.state {
                    GuestState::Running => move_times::expected(&mut *conn, guest.id).await?,
                    _ => None,
                };
                self.found.push(ProposedMove {
                    guest: guest.id,
                    name: guest.name,
                    project: guest.project,
                    environment,
                    state: guest.state,
                    evens: promise,
                    from: told(source, source_after),
                    to: told(target, target_after),
                    downtime,
                });
                self.plan = after;
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Whether a node takes a guest of another one, with all that would come to it before.
async fn takes(
    conn: &mut PgConnection,
    (from, to): (&Planned, &Planned),
    guest: &Candidate,
    environment: Environment,
    asked: &mut usize,
) -> Result<bool> {
    let Some(needed) = to.needed(guest.needed).filter(|_| *asked > 0) else { return Ok(false) };
    *asked -= 1;
    // Of those that would come to the pool before, it is not known: whoever moves one is told when it is full.
    let needed = Room { storage: guest.pooled.unwrap_or(needed.storage), ..needed };
    let wanted = room::Wanted {
        environment,
        only: Some(to.load.id),
        besides: Some(from.load.id),
        moved: Some(guest.id),
        needed,
        driver: guest.driver,
        backing: guest.backing,
    };
    Ok(room::pick(conn, wanted).await?.is_some())
}

fn told(before: &Planned, after: &Planned) -> ProposedNode {
    ProposedNode {
        node: before.load.id,
        address: before.load.address.clone(),
        name: before.load.name.clone(),
        before: before.promised(),
        after: after.promised(),
    }
}
