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

/// Exit code of a program that has panicked, as Rust's own.
const PANICKED: i32 = 101;

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
            let _ = writeln!(
                std::io::stderr(),
                "\nthis is a mistake in infertop, not yours: please report it with the lines above"
            );
            // The runtime catches a panic of a task, and what went on would draw on a screen that
            // is not ours any more. The sampler ends with us.
            std::process::exit(PANICKED);
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
    pub(crate) fn copy(text: &str) -> std::io::Result<()> {
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

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    /// Tells the test, started again in a terminal, that it is the one to panic.
    const PANICS: &str = "INFERTOP_TEST_IN_TERMINAL";

    #[test]
    fn a_panic_gives_the_terminal_back_before_it_is_told() {
        if std::env::var_os(PANICS).is_some() {
            let _screen = Screen::take(true).unwrap();
            panic!("nobody expected this");
        }
        let (mut pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(pty_process::Size::new(24, 80)).unwrap();
        let name = "terminal::tests::a_panic_gives_the_terminal_back_before_it_is_told";
        let mut child = pty_process::blocking::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact", "--nocapture"])
            .env(PANICS, "1")
            .spawn(pts)
            .unwrap();
        let mut seen = Vec::new();
        // The other end of a terminal that is gone is an error, not an end.
        let _ = pty.read_to_end(&mut seen);
        assert_eq!(child.wait().unwrap().code(), Some(PANICKED));
        let seen = String::from_utf8_lossy(&seen);
        let place =
            |words: &str| seen.find(words).unwrap_or_else(|| panic!("no {words:?} in {seen:?}"));
        let (taken, given_back) = (place("\u{1b}[?1049h"), place("\u{1b}[?1049l"));
        // The terminal makes line ends whole again, which raw mode does not.
        let told = place("nobody expected this\r\n");
        assert!(taken < given_back && given_back < told, "{seen:?}");
        assert!(seen[given_back..told].contains("\u{1b}[?25h"), "the cursor is hidden: {seen:?}");
        assert!(place("please report it") > told, "{seen:?}");
    }
}
