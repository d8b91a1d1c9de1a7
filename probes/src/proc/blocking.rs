//! Reads that can block, on a thread of their own: command line and mappings.
//!
//! And the dear one, listening sockets. The first two take the memory lock of the process that is read. When that process hangs in the driver while
//! holding it, the reader hangs too, and no signal ends it. So the table asks and looks later. A read
//! that is over its deadline is reported as no answer; its thread is left behind, a fresh one goes on,
//! and the process is not asked again until the old read has returned. The number of threads is
//! bounded: with all of them stuck, questions are answered "no answer" at once.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::reading::Absence;

use super::cmdline::{CommandLine, read_cmdline};
use super::engine::child_of;
use super::fds::root_prefixes;
use super::maps::{Mappings, read_maps};
use super::sockets::{Ports, read_listening};
use super::stat::parse_stat;
use super::task::ProcRoot;

/// Threads that may hang at the same time.
const MOST_THREADS: usize = 4;

/// What is asked of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// Its command line, unless that is still the known one.
    Command { comm: String, parent: u32, known: Option<u64> },
    /// The listening sockets of its network namespace.
    Listeners { namespace: String },
    /// Its mappings.
    Maps,
}

impl Question {
    fn same_kind(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other)
    }
}

/// A command line, and what the process looks like by it or by its parent's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Command {
    pub(crate) line: CommandLine,
    pub(crate) engine: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// `None`: unchanged.
    Command(Result<Option<Command>, Absence>),
    Listeners(String, Result<Ports, Absence>),
    Maps(Result<Mappings, Absence>),
}

#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) pid: u32,
    pub(crate) start_ticks: u64,
    pub(crate) outcome: Outcome,
    pub(crate) took: Duration,
}

#[derive(Clone, Debug)]
struct Asked {
    pid: u32,
    start_ticks: u64,
    question: Question,
}

impl Asked {
    fn no_answer(&self, took: Duration) -> Answer {
        let outcome = match &self.question {
            Question::Command { .. } => Outcome::Command(Err(Absence::NoAnswer)),
            Question::Listeners { namespace } => {
                Outcome::Listeners(namespace.clone(), Err(Absence::NoAnswer))
            }
            Question::Maps => Outcome::Maps(Err(Absence::NoAnswer)),
        };
        Answer { pid: self.pid, start_ticks: self.start_ticks, outcome, took }
    }
}

#[derive(Debug)]
struct Running {
    thread: usize,
    asked: Asked,
    since: Instant,
    given_up: bool,
}

#[derive(Debug, Default)]
struct State {
    /// All but mappings come first: they are what people see.
    urgent: VecDeque<Asked>,
    maps: VecDeque<Asked>,
    running: Vec<Running>,
    answers: Vec<Answer>,
    threads: usize,
    next_thread: usize,
    closed: bool,
}

impl State {
    fn queued(&self) -> bool {
        !self.urgent.is_empty() || !self.maps.is_empty()
    }

    fn stuck(&self) -> usize {
        self.running.iter().filter(|running| running.given_up).count()
    }
}

#[derive(Debug)]
struct Shared {
    machine: Machine,
    state: Mutex<State>,
    work: Condvar,
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The asking side.
#[derive(Debug)]
pub(crate) struct BlockingReads {
    shared: Arc<Shared>,
    deadline: Duration,
}

impl BlockingReads {
    pub(crate) fn new(machine: Machine, deadline: Duration) -> Self {
        let shared =
            Shared { machine, state: Mutex::default(), work: Condvar::new(), done: Condvar::new() };
        Self { shared: Arc::new(shared), deadline }
    }

    /// Puts a question; false if that process has one open that must come back first.
    pub(crate) fn ask(&mut self, pid: u32, start_ticks: u64, question: Question) -> bool {
        let mut state = self.shared.lock();
        let hangs = state.running.iter().any(|running| {
            running.asked.pid == pid
                && (running.given_up || running.asked.question.same_kind(&question))
        });
        let queue = if question == Question::Maps { &mut state.maps } else { &mut state.urgent };
        let waits = |asked: &Asked| asked.pid == pid && asked.question.same_kind(&question);
        if hangs || queue.iter().any(waits) {
            return false;
        }
        queue.push_back(Asked { pid, start_ticks, question });
        if state.threads == state.stuck() && state.threads < MOST_THREADS {
            self.start_thread(&mut state);
        }
        drop(state);
        self.shared.work.notify_one();
        true
    }

    /// Waits until all but the mappings is there, but no longer than `patience`.
    pub(crate) fn wait_for_urgent(&self, patience: Duration) {
        let state = self.shared.lock();
        let open = |state: &mut State| {
            let counts =
                |running: &Running| !running.given_up && running.asked.question != Question::Maps;
            !state.urgent.is_empty() || state.running.iter().any(counts)
        };
        drop(self.shared.done.wait_timeout_while(state, patience, open));
    }

    /// The answers since the last call; reads beyond their deadline answer that there was none.
    pub(crate) fn answers(&mut self) -> Vec<Answer> {
        let mut state = self.shared.lock();
        let mut answers = std::mem::take(&mut state.answers);
        for running in &mut state.running {
            let took = running.since.elapsed();
            if !running.given_up && took >= self.deadline {
                running.given_up = true;
                answers.push(running.asked.no_answer(took));
            }
        }
        if state.queued() && state.threads == state.stuck() {
            if state.threads < MOST_THREADS {
                self.start_thread(&mut state);
            } else {
                let State { urgent, maps, .. } = &mut *state;
                let waiting = urgent.drain(..).chain(maps.drain(..));
                answers.extend(waiting.map(|asked| asked.no_answer(Duration::ZERO)));
            }
        }
        answers
    }

    fn start_thread(&self, state: &mut State) {
        let thread = state.next_thread;
        let shared = Arc::clone(&self.shared);
        let name = "proc reads".to_string();
        let started = std::thread::Builder::new().name(name).spawn(move || serve(&shared, thread));
        // Without a thread the questions wait, and the next call tries again.
        if started.is_ok() {
            state.next_thread += 1;
            state.threads += 1;
        }
    }
}

impl Drop for BlockingReads {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.work.notify_all();
    }
}

fn serve(shared: &Shared, thread: usize) {
    let prefixes = root_prefixes(&shared.machine);
    let root = ProcRoot::open(&shared.machine);
    let mut state = shared.lock();
    while !state.closed {
        let next = state.urgent.pop_front().or_else(|| state.maps.pop_front());
        let Some(asked) = next else {
            state = shared.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let since = Instant::now();
        state.running.push(Running { thread, asked: asked.clone(), since, given_up: false });
        drop(state);
        let outcome = read(root.as_ref(), &prefixes, &asked);
        state = shared.lock();
        let given_up = state.running.iter().any(|r| r.thread == thread && r.given_up);
        state.running.retain(|running| running.thread != thread);
        state.answers.push(Answer {
            pid: asked.pid,
            start_ticks: asked.start_ticks,
            outcome,
            took: since.elapsed(),
        });
        shared.done.notify_all();
        // Another one has taken over meanwhile.
        if given_up && state.threads > state.stuck() + 1 {
            break;
        }
    }
    state.threads -= 1;
}

fn read(root: Result<&ProcRoot, &Absence>, prefixes: &[Vec<u8>], asked: &Asked) -> Outcome {
    let task = root.map_err(Clone::clone).and_then(|root| Ok((root, root.task(asked.pid)?)));
    match &asked.question {
        Question::Maps => Outcome::Maps(task.and_then(|(_, task)| read_maps(&task, prefixes))),
        Question::Listeners { namespace } => {
            let ports = task.and_then(|(_, task)| read_listening(&task));
            Outcome::Listeners(namespace.clone(), ports)
        }
        Question::Command { comm, parent, known } => {
            Outcome::Command(task.and_then(|(root, task)| {
                let line = read_cmdline(&task, comm, *known)?;
                Ok(line.map(|line| name_command(root, line, *parent)))
            }))
        }
    }
}

/// A child of an engine that has no title yet is named after its parent.
fn name_command(root: &ProcRoot, line: CommandLine, parent: u32) -> Command {
    let engine = line.engine.map(str::to_string).or_else(|| {
        let role = line.unnamed?;
        let above = root.task(parent).ok()?;
        let mut buffer = Vec::new();
        root.read_stat(parent, &mut buffer).ok()?;
        let comm = parse_stat(&buffer)?.comm;
        let above = read_cmdline(&above, &comm, None).ok()??;
        Some(child_of(above.engine?, role))
    });
    Command { line, engine }
}
