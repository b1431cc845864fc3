//! The trace of a frame, from the task that took it to the tasks that do something because of it.

use std::fmt;
use std::future::Future;

use kefu_core::TraceId;
use tracing::{Instrument as _, Span};

tokio::task_local! {
    /// Beside the span, since a span gives none of its fields back. Nothing is decided by it.
    static CURRENT: TraceId;
}

/// Does `work` inside `span`. What it says to other nodes carries `trace`, if a frame caused it.
pub async fn traced<T>(trace: Option<&TraceId>, span: Span, work: impl Future<Output = T>) -> T {
    match trace {
        Some(trace) => CURRENT.scope(trace.clone(), work).instrument(span).await,
        None => work.instrument(span).await,
    }
}

/// The trace of the frame that is being dealt with, inside [`traced`].
#[must_use]
pub fn current_trace() -> Option<TraceId> {
    CURRENT.try_with(TraceId::clone).ok()
}

/// The traces of the frames that are dealt with together, for the span around it.
pub fn traces<'a>(ids: impl Iterator<Item = &'a TraceId> + Clone) -> impl fmt::Display {
    Traces(ids)
}

struct Traces<I>(I);

impl<'a, I: Iterator<Item = &'a TraceId> + Clone> fmt::Display for Traces<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.clone().enumerate().try_for_each(|(index, trace)| {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{trace}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_trace_is_known_inside_its_work_only() {
        let trace = TraceId::new("t1").expect("valid");
        let seen = traced(Some(&trace), Span::none(), async {
            tokio::task::yield_now().await;
            current_trace()
        });
        assert_eq!(seen.await, Some(trace));
        assert_eq!(traced(None, Span::none(), async { current_trace() }).await, None);
        assert_eq!(current_trace(), None);
    }

    #[test]
    fn traces_stand_beside_each_other() {
        let ids = ["t1", "t2"].map(|id| TraceId::new(id).expect("valid"));
        assert_eq!(traces(ids.iter()).to_string(), "t1,t2");
        assert_eq!(traces(ids[..0].iter()).to_string(), "");
    }
}
