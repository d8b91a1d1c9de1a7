//! Travelling in time: asks a daemon or a recording for moments, what was before them, what
//! happened, and metrics over time; one question of each kind at a time, the newest wins.
//!
//! Questions run beside the task that draws, so a slow disk or a busy daemon is waited for by nobody.

use std::future::Future;
use std::time::{Duration, Instant};

use panels::ui::Travel;
use panels::view::{Chart, ChartRequest, Past as Shown};
use probes::history::History;
use probes::past::{Mark, MetricPast, Span};
use probes::snapshot::Snapshot;
use tokio::sync::mpsc;

use super::picture::{KEPT, Picture};
use crate::past::Past;

/// What was before a moment is fetched when one rests there so long: it costs more than the moment.
const REST: Duration = Duration::from_millis(120);
/// A daemon starts before its first snapshot and ends after its last.
const AROUND_MS: u64 = 10_000;
/// How often the span and what happened are asked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// An answer about the past.
pub(super) enum Answer {
    Moment {
        wanted: Wanted,
        found: anyhow::Result<Option<Box<(u64, Snapshot)>>>,
    },
    Window {
        at_ms: u64,
        history: anyhow::Result<History>,
    },
    Older(anyhow::Result<History>),
    Around {
        span: anyhow::Result<Option<Span>>,
        marks: anyhow::Result<Vec<Mark>>,
    },
    Chart {
        request: ChartRequest,
        answer: anyhow::Result<MetricPast>,
    },
    /// The cursor has rested.
    Rested,
    /// Time for the next moment, while it plays.
    Play,
}

/// A moment that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    /// The newest at or before this.
    At(u64),
    /// The one before or after this.
    Neighbour { at_ms: u64, forward: bool },
}

/// Asks, and keeps what is on its way.
pub(super) struct Traveller {
    past: Option<Past>,
    answers: (mpsc::UnboundedSender<Answer>, mpsc::UnboundedReceiver<Answer>),
    /// The question that is on its way, and the one that waits for its answer.
    asked: Option<Wanted>,
    waiting: Option<Wanted>,
    /// The same for charts.
    charted: Option<ChartRequest>,
    chart_waits: Option<ChartRequest>,
    /// Where the newest question leads, milliseconds since 1970.
    target_ms: Option<u64>,
    playing: bool,
    rests_at: Option<Instant>,
    plays_at: Option<Instant>,
    looked_at: Option<Instant>,
}

impl Traveller {
    pub(super) fn new(past: Option<Past>) -> Self {
        Self {
            past,
            answers: mpsc::unbounded_channel(),
            asked: None,
            waiting: None,
            charted: None,
            chart_waits: None,
            target_ms: None,
            playing: false,
            rests_at: None,
            plays_at: None,
            looked_at: None,
        }
    }

    /// The next answer, or the next thing to do. May be dropped half way.
    pub(super) async fn next(&mut self) -> Answer {
        let rest = wait_until(self.rests_at);
        let play = wait_until(self.plays_at);
        let answer = tokio::select! {
            // The sender is our own: the channel never ends.
            Some(answer) = self.answers.1.recv() => answer,
            () = rest => Answer::Rested,
            () = play => Answer::Play,
        };
        match answer {
            Answer::Rested => self.rests_at = None,
            Answer::Play => self.plays_at = None,
            _ => {}
        }
        answer
    }

    /// Another past: a daemon came, or went.
    pub(super) fn attach(&mut self, past: Option<Past>) {
        self.past = past;
        self.answers = mpsc::unbounded_channel();
        self.target_ms = None;
        self.playing = false;
        self.rests_at = None;
        self.plays_at = None;
        self.asked = None;
        self.waiting = None;
        self.charted = None;
        self.chart_waits = None;
    }

    /// Asks what is recorded and what happened.
    pub(super) fn look_around(&mut self) {
        self.looked_at = Some(Instant::now());
        self.ask(|past| async move {
            let span = past.span().await;
            let marks = match &span {
                Ok(Some(span)) => {
                    let from_ms = span.from_ms.saturating_sub(AROUND_MS);
                    past.marks(from_ms, span.to_ms.saturating_add(AROUND_MS)).await
                }
                _ => Ok(Vec::new()),
            };
            Answer::Around { span, marks }
        });
    }

    /// The same, when the last answer is old.
    pub(super) fn look_around_again(&mut self) {
        if self.looked_at.is_none_or(|then| then.elapsed() > LOOK_AGAIN) {
            self.look_around();
        }
    }

    /// What is recorded, waited for.
    pub(super) async fn span(&self) -> anyhow::Result<Span> {
        const HELP: &str =
            "\n  help: start infertop daemon, which remembers, or infertop replay FILE";
        let past = self.past.as_ref();
        let past = past
            .ok_or_else(|| anyhow::anyhow!("there is no past to show: no daemon answers{HELP}"))?;
        let span = past.span().await?;
        span.ok_or_else(|| anyhow::anyhow!("nothing is recorded yet"))
    }

    /// Goes to another moment.
    pub(super) fn go(&mut self, travel: Travel, picture: &Picture) {
        let shown_ms = self.target_ms.unwrap_or_else(|| picture.shown_ms());
        let span = picture.past.span;
        let stops = !matches!(travel, Travel::TogglePlay);
        if stops {
            self.playing = false;
            self.plays_at = None;
        }
        match travel {
            Travel::Step { forward } if self.asked.is_none() => {
                self.want(Wanted::Neighbour { at_ms: shown_ms, forward });
            }
            // The answer to the last step is on its way: go on from where it will lead.
            Travel::Step { forward } => {
                let step_ms = picture.step_ms();
                let to =
                    if forward { shown_ms + step_ms } else { shown_ms.saturating_sub(step_ms) };
                self.want(Wanted::At(to));
            }
            Travel::By { ms } => self.want(Wanted::At(shown_ms.saturating_add_signed(ms))),
            Travel::To { ms } => self.want(Wanted::At(ms)),
            Travel::Mark { forward } => {
                let marks = picture.past.marks.iter().map(|mark| mark.at_ms);
                // What happened right before the moment that is shown is shown already.
                let here_ms = shown_ms.saturating_sub(picture.step_ms());
                let found = if forward {
                    marks.filter(|at| *at > shown_ms).min()
                } else {
                    marks.filter(|at| *at < here_ms).max()
                };
                // The first picture of it, and not the last one before it.
                if let Some(at_ms) = found {
                    let at_ms = at_ms.saturating_sub(1);
                    self.want(Wanted::Neighbour { at_ms, forward: true });
                }
            }
            Travel::Oldest => self.want(Wanted::At(0)),
            Travel::Newest if picture.is_recording() => self.want(Wanted::At(u64::MAX)),
            Travel::Newest => {
                self.target_ms = None;
                self.waiting = None;
                self.rests_at = None;
            }
            Travel::TogglePlay => {
                self.playing = !self.playing;
                self.plays_at = self.playing.then(Instant::now);
            }
        }
        // A daemon's past ends where the present begins.
        if !picture.is_recording()
            && let (Some(target), Some(span)) = (self.target_ms, span)
            && target > span.to_ms.max(picture.newest_ms())
            && !matches!(travel, Travel::Oldest)
        {
            self.target_ms = None;
            self.waiting = None;
        }
    }

    /// Puts what is known without an answer into the picture: whether it plays, whether it is live.
    pub(super) fn show_state(&self, picture: &mut Picture) {
        picture.past.playing = self.playing;
        if self.target_ms.is_none() && !picture.is_recording() {
            picture.go_live();
        }
    }

    /// Asks for a metric over time; one that is on its way is not asked for again.
    pub(super) fn chart(&mut self, request: ChartRequest, picture: &mut Picture) {
        let before = picture.past.chart.take();
        let is_same = before.as_ref().is_some_and(|chart| chart.request.metric == request.metric);
        // The old curve stays until the new one is here.
        let answer = before.filter(|_| is_same).and_then(|chart| chart.answer);
        picture.past.chart = Some(Chart { request: request.clone(), answer });
        if self.charted.is_some() {
            self.chart_waits = Some(request);
            return;
        }
        self.ask_chart(request);
    }

    fn ask_chart(&mut self, request: ChartRequest) {
        self.charted = Some(request.clone());
        let step_ms = (request.to_ms.saturating_sub(request.from_ms)
            / u64::from(request.points.max(1)))
        .max(1);
        self.ask(|past| async move {
            let answer =
                past.metric(&request.metric, request.from_ms, request.to_ms, step_ms).await;
            Answer::Chart { request, answer }
        });
    }

    /// Asks for the figures of the time before a daemon's first snapshot.
    pub(super) fn fetch_older(&mut self, until_ms: u64) {
        self.ask(move |past| async move { Answer::Older(past.window(until_ms, KEPT).await) });
    }

    fn want(&mut self, wanted: Wanted) {
        self.target_ms = Some(match wanted {
            Wanted::At(ms) => ms,
            Wanted::Neighbour { at_ms, .. } => at_ms,
        });
        if self.asked.is_some() {
            self.waiting = Some(wanted);
            return;
        }
        self.asked = Some(wanted);
        self.ask(move |past| async move {
            let found = match wanted {
                Wanted::At(ms) => past.at(ms).await,
                Wanted::Neighbour { at_ms, forward } => past.neighbour(at_ms, forward).await,
            };
            Answer::Moment { wanted, found: found.map(|found| found.map(Box::new)) }
        });
    }

    fn ask<F>(&self, question: impl FnOnce(Past) -> F)
    where
        F: Future<Output = Answer> + Send + 'static,
    {
        if let Some(past) = self.past.clone() {
            let (answers, question) = (self.answers.0.clone(), question(past));
            tokio::spawn(async move {
                // Nobody listens any more when the program ends.
                let _ = answers.send(question.await);
            });
        }
    }

    /// Puts an answer into the picture; what it returns is for people.
    pub(super) fn apply(&mut self, answer: Answer, picture: &mut Picture) -> Option<String> {
        match answer {
            Answer::Moment { wanted, found } => {
                self.asked = None;
                if let Some(waiting) = self.waiting.take() {
                    self.want(waiting);
                }
                // One that went back to the present meanwhile is left there.
                self.target_ms?;
                match found {
                    Ok(Some(found)) => {
                        let (at_ms, snapshot) = *found;
                        if self.asked.is_none() {
                            self.target_ms = Some(at_ms);
                            self.rests_at = Some(Instant::now() + REST);
                        }
                        picture.show_past(at_ms, snapshot);
                        if self.playing {
                            let pace = Duration::from_millis(picture.step_ms());
                            self.plays_at = Some(Instant::now() + pace);
                        }
                    }
                    Ok(None) => self.at_an_end(wanted, picture),
                    Err(why) => {
                        self.playing = false;
                        self.show_state(picture);
                        return Some(format!("{why:#}"));
                    }
                }
            }
            Answer::Window { at_ms, history: Ok(history) } => {
                if picture.past.cursor_ms == Some(at_ms) {
                    picture.hold_history(history);
                }
            }
            Answer::Older(Ok(history)) => picture.put_older(&history),
            // The moment is there; that its sparklines are short shows by itself.
            Answer::Window { history: Err(_), .. } | Answer::Older(Err(_)) => {}
            Answer::Around { span, marks } => look_around(&mut picture.past, span, marks),
            Answer::Chart { request, answer } => {
                self.charted = None;
                if let Some(waits) = self.chart_waits.take() {
                    self.ask_chart(waits);
                }
                // The stretch may have moved on meanwhile: a curve that ends a little earlier is
                // better than none.
                if let Some(chart) = &mut picture.past.chart
                    && chart.request.metric == request.metric
                {
                    chart.answer = Some(answer.map_err(|why| format!("{why:#}")));
                }
            }
            Answer::Rested => {
                if let Some(at_ms) = picture.past.cursor_ms {
                    self.ask(move |past| async move {
                        Answer::Window { at_ms, history: past.window(at_ms, KEPT).await }
                    });
                }
            }
            Answer::Play => {
                let at_ms = picture.shown_ms();
                self.want(Wanted::Neighbour { at_ms, forward: true });
            }
        }
        None
    }

    /// There is nothing further in this direction.
    fn at_an_end(&mut self, wanted: Wanted, picture: &mut Picture) {
        let forward = matches!(wanted, Wanted::Neighbour { forward: true, .. });
        self.playing = false;
        if forward && !picture.is_recording() {
            self.target_ms = None;
        } else {
            self.target_ms = picture.past.cursor_ms;
        }
        self.show_state(picture);
    }
}

fn look_around(
    past: &mut Shown,
    span: anyhow::Result<Option<Span>>,
    marks: anyhow::Result<Vec<Mark>>,
) {
    match span {
        Ok(span) => {
            past.trouble = span.is_none().then(|| "nothing is recorded yet".into());
            past.span = span;
        }
        Err(why) => past.trouble = Some(format!("{why:#}")),
    }
    if let Ok(marks) = marks {
        past.marks = marks;
    }
}

async fn wait_until(instant: Option<Instant>) {
    match instant {
        Some(instant) => tokio::time::sleep_until(instant.into()).await,
        None => std::future::pending().await,
    }
}
