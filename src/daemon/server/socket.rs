//! The socket's file: made, handed to the group, taken away at the end.
//!
//! It is bound under another name, given its owner and mode there and then renamed: at no instant
//! does a socket stand there that others than wanted may open, and one left behind by a daemon that
//! was killed is replaced at once.

use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tokio::net::{UnixListener, UnixStream};

/// Owner and group may connect.
const MODE: u32 = 0o660;
/// Without the group: the owner alone.
const OWNER_MODE: u32 = 0o600;
/// Anyone may pass to the socket, whose own mode says who may connect.
const FOLDER_MODE: u32 = 0o755;
/// The groups of this machine.
const GROUPS: &str = "/etc/group";
/// The kernel's room for the path of a socket, without the end mark.
const LONGEST_PATH: usize = 107;

/// A bound socket; its file goes with it.
pub(crate) struct Socket {
    listener: UnixListener,
    path: PathBuf,
    group: Option<String>,
    inode: (u64, u64),
    /// Why the group could not be given the socket, if so.
    pub(crate) note: Option<String>,
}

/// Binds the socket. Replaces the file of a daemon that is gone, never that of one that answers.
pub(crate) fn bind(path: &Path, group: Option<&str>) -> anyhow::Result<Socket> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        anyhow::bail!("{} is no path for a socket", path.display())
    };
    make_folder(folder)?;
    require_free(path)?;
    let fresh = folder.join(format!(".{}.{}", name.display(), std::process::id()));
    anyhow::ensure!(
        fresh.as_os_str().len() <= LONGEST_PATH,
        "the path of the socket {} is longer than the kernel takes\n  help: choose a shorter one \
         with --socket",
        path.display()
    );
    // Of a daemon of the same number that was killed right here.
    let _ = std::fs::remove_file(&fresh);
    let bound = put(&fresh, path, group);
    if bound.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    bound
}

fn make_folder(folder: &Path) -> anyhow::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    std::fs::create_dir_all(folder)
        .and_then(|()| {
            std::fs::set_permissions(folder, std::fs::Permissions::from_mode(FOLDER_MODE))
        })
        .with_context(|| format!("cannot make the socket's folder {}", folder.display()))
}

/// Nobody may answer there, and what stands there must be a socket.
fn require_free(path: &Path) -> anyhow::Result<()> {
    let Ok(found) = std::fs::symlink_metadata(path) else { return Ok(()) };
    anyhow::ensure!(
        found.file_type().is_socket(),
        "cannot put the socket at {}: there is something else\n  help: move it away, or choose \
         another path with --socket",
        path.display()
    );
    match std::os::unix::net::UnixStream::connect(path) {
        Ok(_) => anyhow::bail!(
            "another daemon answers on {}\n  help: stop it first, or choose another path with \
             --socket",
            path.display()
        ),
        Err(_) => Ok(()),
    }
}

fn put(fresh: &Path, path: &Path, group: Option<&str>) -> anyhow::Result<Socket> {
    let failed = || format!("cannot put the socket at {}", path.display());
    let listener = UnixListener::bind(fresh).with_context(failed)?;
    let note = group.and_then(|group| hand_over(fresh, group).err());
    let mode = if group.is_some() && note.is_none() { MODE } else { OWNER_MODE };
    std::fs::set_permissions(fresh, std::fs::Permissions::from_mode(mode)).with_context(failed)?;
    let inode = inode(fresh).with_context(failed)?;
    std::fs::rename(fresh, path).with_context(failed)?;
    Ok(Socket { listener, path: path.into(), group: group.map(Into::into), inode, note })
}

fn inode(path: &Path) -> std::io::Result<(u64, u64)> {
    std::fs::symlink_metadata(path).map(|found| (found.dev(), found.ino()))
}

/// Gives the socket to a group, or says why only its owner can use it.
fn hand_over(path: &Path, group: &str) -> Result<(), String> {
    let only_owner = "only its owner and root can use the socket";
    let gid = group.parse().ok().or_else(|| {
        std::fs::read(GROUPS).ok().and_then(|text| parse_group(&text, group.as_bytes()))
    });
    let Some(gid) = gid else {
        return Err(format!(
            "there is no group {group}: {only_owner}\n  help: groupadd --system {group}, then \
             restart the daemon"
        ));
    };
    chown(path, None, Some(gid)).map_err(|error| {
        format!(
            "cannot give the socket to the group {group}: {error}; {only_owner}\n  help: run the \
             daemon as root or as a member of {group}"
        )
    })
}

/// The number of a group.
fn parse_group(text: &[u8], name: &[u8]) -> Option<u32> {
    text.split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.split(|&byte| byte == b':');
        let found = fields.next() == Some(name);
        let gid = fields.nth(1).filter(|_| found)?;
        std::str::from_utf8(gid).ok()?.parse().ok()
    })
}

impl Socket {
    /// The next connection.
    pub(super) async fn accept(&self) -> std::io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }

    /// Puts its file back where somebody has taken it away, as those do who tidy folders up: whoever
    /// looks for the daemon would not find it. Says whether that was needed.
    pub(super) fn stand(&mut self) -> anyhow::Result<bool> {
        if inode(&self.path).is_ok_and(|found| found == self.inode) {
            return Ok(false);
        }
        *self = bind(&self.path, self.group.as_deref())?;
        Ok(true)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        // Another daemon may have put its own there.
        if inode(&self.path).is_ok_and(|found| found == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[tokio::test]
    async fn a_socket_is_for_owner_and_group_and_goes_with_its_daemon() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/infertop.sock");
        let own = rustix::process::getegid().as_raw().to_string();
        let socket = bind(&path, Some(&own)).unwrap();
        assert_eq!((mode(&path), &socket.note), (0o660, &None));
        assert_eq!(mode(path.parent().unwrap()), 0o755);
        drop(socket);
        assert!(!path.exists());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
    }

    #[tokio::test]
    async fn without_the_group_the_owner_alone_may_connect_and_it_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("infertop.sock");
        let socket = bind(&path, Some("no-such-group-here")).unwrap();
        assert_eq!(mode(&path), 0o600);
        let note = socket.note.as_ref().unwrap();
        assert!(note.contains("there is no group no-such-group-here"), "{note}");
        drop(socket);
        assert_eq!(bind(&path, None).unwrap().note, None);
    }

    #[tokio::test]
    async fn a_socket_left_behind_is_replaced_and_one_that_answers_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("infertop.sock");
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        let socket = bind(&path, None).unwrap();
        let error = bind(&path, None).err().unwrap().to_string();
        assert!(error.contains("another daemon answers"), "{error}");
        // The one that was refused took nothing away.
        assert!(path.exists());
        drop(socket);
        std::fs::write(&path, "precious").unwrap();
        let error = bind(&path, None).err().unwrap().to_string();
        assert!(error.contains("there is something else"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"precious");
    }

    #[tokio::test]
    async fn a_socket_that_was_taken_away_is_put_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run/infertop.sock");
        let mut socket = bind(&path, None).unwrap();
        assert!(!socket.stand().unwrap());
        std::fs::remove_dir_all(folder.path().join("run")).unwrap();
        assert!(socket.stand().unwrap());
        let _client = UnixStream::connect(&path).await.unwrap();
        socket.accept().await.unwrap();
        // One that another daemon has put there is left alone.
        std::fs::remove_file(&path).unwrap();
        let other = bind(&path, None).unwrap();
        assert!(socket.stand().is_err());
        drop(socket);
        assert!(path.exists());
        drop(other);
    }

    #[tokio::test]
    async fn a_path_that_the_kernel_does_not_take_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(120));
        let error = bind(&path, None).err().unwrap().to_string();
        assert!(error.contains("longer than the kernel takes"), "{error}");
    }

    #[test]
    fn groups_are_found_by_name() {
        let text = b"root:x:0:\n\xff:x:7:\nbad:x:none:\ninfertop:x:998:alice,bob\ninfertop2:x:5:\n";
        assert_eq!(parse_group(text, b"infertop"), Some(998));
        assert_eq!(parse_group(text, b"infer"), None);
        assert_eq!(parse_group(text, b"bad"), None);
        assert_eq!(parse_group(b"", b"root"), None);
    }
}
