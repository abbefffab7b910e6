//! steno's store on our database: when an event must be durable, and what it means for a step.
//!
//! An event is kept until something outside depends on it: the start of an effect, and the
//! start of an undo. There everything before it is written, the lease checked, and only then
//! the effect begins. So the output of a step is durable before the next one uses it, and an
//! effect that began is known to have begun. What is lost in a crash in between is the record
//! of work that is then repeated, which steps allow.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::Utc;
use corpus_domain::{JobState, StepState};
use steno::{SagaCachedState, SagaCreateParams, SagaId, SagaNodeEvent, SagaNodeEventType, SecStore};

use super::run::{NodePart, Run};

/// The store of one run.
#[derive(Debug)]
pub(super) struct RunStore(pub Arc<Run>);

impl RunStore {
    /// The step that begins with this event, and the state that puts it in.
    fn beginning(&self, event: &SagaNodeEvent) -> Option<(i32, StepState)> {
        let &(index, part) = self.0.nodes.get(&u32::from(event.node_id))?;
        match (part, &event.event_type) {
            (NodePart::Effect, SagaNodeEventType::Started) => Some((index, StepState::Running)),
            (NodePart::Guard, SagaNodeEventType::UndoStarted) => Some((index, StepState::Undoing)),
            _ => None,
        }
    }

    /// Writes what came before; the step that would begin is left to another server.
    async fn leave_to_others(&self) -> ! {
        let _ = self.0.writer.flush().await;
        self.0.stay_halted().await
    }
}

#[async_trait]
impl SecStore for RunStore {
    /// Jobs are created by submission and always resumed, so steno never asks for this.
    async fn saga_create(&self, _: SagaCreateParams) -> Result<(), anyhow::Error> {
        Ok(())
    }

    async fn record_event(&self, event: SagaNodeEvent) {
        #[cfg(any(test, feature = "testing"))]
        if self.0.faults.dies_here() {
            self.0.stay_halted().await;
        }
        let beginning = self.beginning(&event);
        if beginning.is_some() && self.0.drain.is_cancelled() {
            self.leave_to_others().await;
        }
        let json = serde_json::to_value(&event).unwrap_or_default();
        self.0.writer.event(event.node_id.into(), event.event_type.label(), json);
        let Some((index, state)) = beginning else { return };
        self.0.writer.step(index, |row| {
            row.state = state;
            row.attempts = 1;
            row.started_at.get_or_insert_with(Utc::now);
        });
        if self.0.writer.flush().await.is_err() {
            self.0.stay_halted().await;
        }
    }

    async fn saga_update(&self, _: SagaId, update: SagaCachedState) {
        if update == SagaCachedState::Unwinding {
            self.0.writer.state(JobState::Undoing);
        }
    }
}
