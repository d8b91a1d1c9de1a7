//! The terminal: raw mode, the other screen, the mouse; given back however the program ends.

use std::io::{BufWriter, Stdout, Write as _, stdout};

use anyhow::Context as _;
use crossterm::clipboard::CopyToClipboard;
use crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste};
use crossterm::execute;
use crossterm::style::Print;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, SetTitle, disable_raw_mode, enable_raw_mode,
};
use ratatui::backend::CrosstermBackend;

/// The screen while it is ours.
pub(crate) struct Screen {
    pub(crate) terminal: ratatui::Terminal<CrosstermBackend<BufWriter<Stdout>>>,
    mouse: bool,
}

/// Mouse reports for clicks and the wheel alone. The library's own set also asks for every motion,
/// which over SSH is a stream of events that nobody looks at.
const CLICKS_AND_WHEEL: &str = "\x1b[?1000h\x1b[?1006h";
/// A frame is written in one go.
const BUFFER_BYTES: usize = 64 << 10;

impl Screen {
    /// Takes the terminal. A panic gives it back before its message is printed.
    pub(crate) fn take(mouse: bool) -> anyhow::Result<Self> {
        let writer = BufWriter::with_capacity(BUFFER_BYTES, stdout());
        let terminal = ratatui::Terminal::new(CrosstermBackend::new(writer))
            .context("cannot ask the terminal for its size")?;
        let mut screen = Self { terminal, mouse };
        screen.enter().context("cannot switch the terminal to raw mode")?;
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            give_back();
            print(panic);
        }));
        Ok(screen)
    }

    fn enter(&mut self) -> std::io::Result<()> {
        enable_raw_mode()?;
        execute!(stdout(), EnterAlternateScreen, EnableBracketedPaste, SetTitle("infertop"))?;
        if self.mouse {
            execute!(stdout(), Print(CLICKS_AND_WHEEL))?;
        }
        // Clears and draws anew. `clear` would ask the terminal for its cursor and wait seconds for
        // one that does not answer.
        let area = self.terminal.size()?.into();
        self.terminal.resize(area)
    }

    /// Gives the terminal back, stops this process as Ctrl-Z does, and takes it again afterwards.
    pub(crate) fn suspend(&mut self) -> anyhow::Result<()> {
        give_back();
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TSTP)
            .context("cannot stop the own process")?;
        self.enter().context("cannot take the terminal again")
    }

    /// Puts a text on the clipboard of the terminal in front of the person (OSC 52).
    pub(crate) fn copy(&mut self, text: &str) -> std::io::Result<()> {
        execute!(stdout(), CopyToClipboard::to_clipboard_from(text))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Undoes everything; what cannot be undone any more is of a terminal that is gone.
fn give_back() {
    let _ = execute!(
        stdout(),
        DisableMouseCapture,
        DisableBracketedPaste,
        LeaveAlternateScreen,
        crossterm::cursor::Show
    );
    let _ = disable_raw_mode();
    let _ = stdout().flush();
}
