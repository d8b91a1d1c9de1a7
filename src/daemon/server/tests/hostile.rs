//! Clients that are slow, broken or ill-meaning: each is let go, and nobody else notices.

use tokio::time::Instant;

use super::*;

const SHORT: Patience = Patience {
    ask: Duration::from_millis(150),
    stall: Duration::from_millis(150),
    piece: Duration::from_millis(400),
};

/// A snapshot larger than all that the kernel keeps for a reader.
fn large() -> Snapshot {
    let process = probes::proc::Process {
        command: "python3 -m vllm.entrypoints ".repeat(30_000).into(),
        ..probes::proc::Process::default()
    };
    Snapshot { schema: 1, processes: vec![process], ..Snapshot::default() }
}

async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it never came to {what}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

impl Daemon {
    async fn connect(&self) -> UnixStream {
        UnixStream::connect(&self.socket).await.unwrap()
    }

    async fn sends(&self, bytes: &[u8]) -> UnixStream {
        let mut stream = self.connect().await;
        stream.write_all(bytes).await.unwrap();
        stream
    }

    async fn own(&self) -> Own {
        self.client().get_json("/v1/self").await.unwrap()
    }

    async fn is_well(&self) {
        let began = Instant::now();
        self.client().health().await.unwrap();
        let took = began.elapsed();
        assert!(took < Duration::from_secs(1), "health took {took:?}");
    }
}

/// Waits for the end of a connection, whichever way.
async fn ends(stream: &mut UnixStream) -> String {
    let mut heard = Vec::new();
    let ended = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut heard)).await;
    ended.expect("the connection stays open").ok();
    String::from_utf8_lossy(&heard).into_owned()
}

#[tokio::test]
async fn whoever_does_not_ask_in_time_is_let_go() {
    let daemon = Daemon::with_patience(SHORT);
    for begin in ["", "GET /v1/hea", "GET /v1/health HTTP/1.1\r\nhost: x\r\n"] {
        let mut stream = daemon.sends(begin.as_bytes()).await;
        assert!(!ends(&mut stream).await.contains("200 OK"), "{begin}");
    }
    // Neither does a letter now and then help.
    let mut stream = daemon.connect().await;
    let began = Instant::now();
    while stream.write_all(b"G").await.is_ok() {
        assert!(began.elapsed() < PATIENCE, "it may go on for ever");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    daemon.is_well().await;
}

#[tokio::test]
async fn what_is_no_request_is_refused() {
    let daemon = Daemon::start();
    daemon.tick(1);
    let headers = "x: y\r\n".repeat(100);
    let huge = format!("x: {}\r\n", "y".repeat(1 << 20));
    let long = format!("GET /v1/snapshot?at={} HTTP/1.1\r\n\r\n", "9".repeat(1 << 20));
    for (request, status) in [
        ("GET /v1/health\r\n\r\n".to_string(), 400),
        ("\r\n\r\nno such thing\r\n\r\n".into(), 400),
        ("GET /v1/health HTTP/7.3\r\n\r\n".into(), 400),
        (format!("GET /v1/health HTTP/1.1\r\n{headers}\r\n"), 431),
        (format!("GET /v1/health HTTP/1.1\r\n{huge}\r\n"), 431),
        (long, 431),
    ] {
        let answer = daemon.raw(request.as_bytes()).await;
        let begin: String = request.chars().take(40).collect();
        // Who is refused while still sending may miss the words.
        let found = answer.split(' ').nth(1).unwrap_or("none");
        assert!(found == status.to_string() || found == "none", "{begin:?}: {answer}");
        daemon.is_well().await;
    }
    let garbage: [&[u8]; 3] =
        [b"\xff\xfe\xfd\0\r\n\r\n", &vec![0; 100_000], b"GET /\xc3\x28 HTTP/1.1\r\n\r\n"];
    for bytes in garbage {
        assert!(!daemon.raw(bytes).await.contains("200 OK"));
        daemon.is_well().await;
    }
}

#[tokio::test]
async fn a_body_without_end_is_not_read() {
    let daemon = Daemon::with_patience(SHORT);
    for length in ["content-length: 99999999999", "transfer-encoding: chunked"] {
        for line in ["GET /v1/health", "POST /v1/resume?x=1", "POST /v1/nothing"] {
            let head = format!("{line} HTTP/1.1\r\nhost: x\r\n{length}\r\n\r\n");
            let mut stream = daemon.sends(head.as_bytes()).await;
            let (began, mut sent) = (Instant::now(), 0);
            while stream.write_all(&vec![b'a'; 1 << 16]).await.is_ok() {
                sent += 1 << 16;
                assert!(began.elapsed() < PATIENCE && sent < 1 << 24, "{line} takes it all");
            }
        }
    }
    daemon.is_well().await;
}

#[tokio::test]
async fn a_connection_answers_once() {
    let daemon = Daemon::start();
    let one = "GET /v1/health HTTP/1.1\r\nhost: x\r\n\r\n";
    let answer = daemon.raw(one.repeat(1000).as_bytes()).await;
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    // The half that has been said is closed by some clients.
    let mut stream = daemon.sends(one.as_bytes()).await;
    stream.shutdown().await.unwrap();
    assert!(ends(&mut stream).await.contains("\"status\":"));
}

#[tokio::test]
async fn five_hundred_that_hang_keep_nobody_out() {
    let daemon = Daemon::start();
    daemon.tick(1);
    let mut hanging = Vec::new();
    for at in 0..500 {
        let begin: &[u8] = if at % 2 == 0 { b"" } else { b"GET /v1/snapshot HTT" };
        hanging.push(daemon.sends(begin).await);
        if at % 50 == 0 {
            daemon.is_well().await;
        }
    }
    let socket = daemon.own().await.socket;
    assert!(socket.connections <= 64, "{socket:?}");
    assert!(socket.sent_away_total >= 436, "{socket:?}");
    // Those that were sent away know it.
    assert!(ends(&mut hanging[0]).await.is_empty());
    let (status, _, _) = daemon.ask("GET /v1/snapshot", "").await;
    assert_eq!(status, 200);
}

#[tokio::test]
async fn readers_that_do_not_read_keep_nobody_out_and_are_given_up() {
    let daemon = Daemon::with_patience(Patience { stall: Duration::from_millis(600), ..SHORT });
    daemon.tick_with(1, large());
    let mut hanging = Vec::new();
    for at in 0..200 {
        let path = if at % 2 == 0 { "frames" } else { "snapshot" };
        let request = format!("GET /v1/{path} HTTP/1.1\r\nhost: x\r\n\r\n");
        hanging.push(daemon.sends(request.as_bytes()).await);
        tokio::time::sleep(Duration::from_millis(5)).await;
        daemon.is_well().await;
    }
    let mut stalled = 0;
    while stalled < 40 {
        let socket = daemon.own().await.socket;
        assert!(socket.connections <= 64 && socket.readers <= 48, "{socket:?}");
        stalled = socket.stalled_total;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_trickle_is_no_reading() {
    let patience = Patience { stall: Duration::from_mins(1), ..SHORT };
    let daemon = Daemon::with_patience(patience);
    daemon.tick_with(1, large());
    let mut stream = daemon.sends(b"GET /v1/snapshot HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let began = Instant::now();
    let mut bytes = [0; 512];
    while daemon.own().await.socket.stalled_total == 0 {
        assert!(stream.read(&mut bytes).await.unwrap() > 0);
        assert!(began.elapsed() < PATIENCE, "it may go on for ever");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_late_reader_gets_the_newest_and_is_told_what_it_lost() {
    let daemon = Daemon::start();
    daemon.tick_with(1, large());
    let mut frames = daemon.client().frames().await.unwrap();
    let first = frames.next().await.unwrap();
    let mut seen = vec![(first.number, first.lost)];
    for number in 2..=60 {
        daemon.tick_with(number, large());
        tokio::task::yield_now().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    while seen.last().unwrap().0 < 60 {
        let heard = frames.next().await.unwrap();
        assert_eq!(heard.snapshot.unwrap().sequence, heard.number);
        seen.push((heard.number, heard.lost));
    }
    // What came and what was lost make up all there was; a few were on their way already.
    let lost: u64 = seen.iter().map(|(_, lost)| lost).sum();
    assert_eq!(seen.len() as u64 + lost, 60, "{seen:?}");
    assert!(seen.len() < 20, "{seen:?}");
    assert_eq!(daemon.own().await.socket.frames_lost_total, lost);
}

#[tokio::test]
async fn frames_are_made_once_whoever_reads_them() {
    let daemon = Daemon::start();
    daemon.tick_with(1, large());
    let moment = daemon.hub.newest.borrow().clone().unwrap();
    let json = moment.json().await.as_ptr();
    let mut readers = Vec::new();
    for _ in 0..20 {
        readers.push(daemon.client().frames().await.unwrap());
    }
    for reader in &mut readers {
        assert_eq!(reader.next().await.unwrap().number, 1);
    }
    assert_eq!(moment.json().await.as_ptr(), json);
}

#[tokio::test]
async fn a_reader_who_reads_gets_the_place_of_one_who_does_not() {
    let daemon = Daemon::start();
    daemon.tick_with(1, large());
    // From here on the document is made, and only readers are waited for.
    assert_eq!(daemon.ask("GET /v1/snapshot", "").await.0, 200);
    let mut hanging = Vec::new();
    for _ in 0..60 {
        hanging.push(daemon.sends(b"GET /v1/frames HTTP/1.1\r\nhost: x\r\n\r\n").await);
    }
    for _ in 0..10 {
        let mut frames = daemon.client().frames().await.unwrap();
        assert_eq!(frames.next().await.unwrap().number, 1);
    }
}

#[tokio::test]
async fn beyond_its_readers_the_socket_still_answers_questions() {
    let daemon = Daemon::start();
    daemon.tick(1);
    let mut readers = Vec::new();
    for _ in 0..48 {
        let mut frames = daemon.client().frames().await.unwrap();
        frames.next().await.unwrap();
        readers.push(frames);
    }
    let error = daemon.client().frames().await.err().unwrap().to_string();
    assert!(error.contains("48 readers") && error.contains("help:"), "{error}");
    daemon.is_well().await;
    readers.pop();
    let mut number = 1;
    // That a reader has gone is noticed when there is something to tell it.
    until("a free place", || {
        number += 1;
        daemon.tick(number);
        daemon.hub.served.counts().readers < 48
    })
    .await;
    daemon.client().frames().await.unwrap();
}
