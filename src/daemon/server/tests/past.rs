//! What is remembered, over the socket and by the same words as from the file.

use probes::past::{Mark, MarkKind};

use super::*;
use crate::past::Past;

const BEGIN: u64 = 1_800_000_000_000;

impl Daemon {
    /// So many ticks, a second apart.
    async fn remembers(&self, ticks: u64) -> Past {
        for number in 1..=ticks {
            let mut gpu =
                probes::snapshot::Gpu { uuid: "GPU-1".to_string().into(), ..Default::default() };
            gpu.utilization.gpu_ratio = (number as f64 / 100.0).into();
            gpu.health = probes::snapshot::Health::Answering;
            let snapshot = Snapshot { gpus: vec![gpu], ..Snapshot::default() };
            self.tick_at(number, BEGIN + number * 1000, snapshot);
            // The store takes only a few at a time.
            self.stores(number).await;
        }
        let at_ms = BEGIN + 5000;
        let text = "the driver was loaded again".into();
        self.hub.store.mark(Mark { at_ms, kind: MarkKind::DriverChange, text, ..Mark::default() });
        Past::Daemon(self.client())
    }
}

#[tokio::test]
async fn the_past_is_the_same_over_the_socket_and_from_the_file() {
    let daemon = Daemon::start();
    let told = daemon.remembers(40).await;
    let read = Past::open(&daemon.hub.store.path()).unwrap();

    let span = told.span().await.unwrap().unwrap();
    assert_eq!((span.from_ms, span.to_ms), (BEGIN + 1000, BEGIN + 40_000));
    assert_eq!(read.span().await.unwrap(), Some(span));

    for (at_ms, found_ms) in [
        (0, BEGIN + 1000),
        (BEGIN + 7000, BEGIN + 7000),
        (BEGIN + 7999, BEGIN + 7000),
        (u64::MAX, BEGIN + 40_000),
    ] {
        let (at, snapshot) = told.at(at_ms).await.unwrap().unwrap();
        assert_eq!((at, snapshot.taken_at_ms), (found_ms, found_ms));
        assert_eq!(read.at(at_ms).await.unwrap().unwrap(), (at, snapshot));
    }
    for (at_ms, forward, found) in [
        (BEGIN + 7000, true, Some(BEGIN + 8000)),
        (BEGIN + 7000, false, Some(BEGIN + 6000)),
        (BEGIN + 40_000, true, None),
        (BEGIN + 1000, false, None),
    ] {
        let told = told.neighbour(at_ms, forward).await.unwrap();
        assert_eq!(told.as_ref().map(|(at, _)| *at), found, "{at_ms} {forward}");
        assert_eq!(read.neighbour(at_ms, forward).await.unwrap(), told);
    }

    let gpu = probes::snapshot::Gpu { uuid: "GPU-1".to_string().into(), ..Default::default() };
    let busy = |history: &probes::history::History| -> Vec<f32> {
        history.series(&gpu, "infertop_gpu_busy_ratio").collect()
    };
    let window = busy(&told.window(BEGIN + 20_000, 10).await.unwrap());
    assert_eq!(window.len(), 10);
    assert!((window[9] - 0.2).abs() < 1e-6, "{window:?}");
    assert_eq!(busy(&read.window(BEGIN + 20_000, 10).await.unwrap()), window);

    let metric = "infertop_gpu_busy_ratio";
    let past = told.metric(metric, BEGIN, BEGIN + 40_000, 10_000).await.unwrap();
    assert_eq!((past.from_ms, past.step_ms, past.series.len()), (BEGIN, 10_000, 1));
    assert_eq!(past.series[0].subject, "GPU-1");
    assert!((past.series[0].max[1].unwrap() - 0.19).abs() < 1e-6, "{past:?}");
    assert_eq!(read.metric(metric, BEGIN, BEGIN + 40_000, 10_000).await.unwrap(), past);

    let marks = told.marks(0, u64::MAX).await.unwrap();
    assert!(marks.iter().any(|mark| mark.kind == MarkKind::DriverChange), "{marks:?}");
    assert_eq!(read.marks(0, u64::MAX).await.unwrap(), marks);
}

#[tokio::test]
async fn a_history_says_the_step_it_used_and_what_it_does_not_know() {
    let daemon = Daemon::start();
    daemon.remembers(3).await;
    let ask = async |query: &str| {
        let line = format!("GET /v1/history?metric=infertop_gpu_busy_ratio&{query}");
        daemon.ask(&line, "").await
    };
    let week = format!("from={BEGIN}&to={}&step=1s", BEGIN + 7 * 86_400_000);
    let (status, _, body) = ask(&week).await;
    assert_eq!((status, &body["step_ms"]), (200, &600_000.into()), "{}", body["error"]);
    assert!(body["series"][0]["mean"].as_array().unwrap().len() <= 2001);
    assert_eq!(body["series"][0]["mean"][1], Value::Null);
    for (line, status, error, help) in [
        ("history", 400, "metric is missing", "metric="),
        ("history?metric=infertop_gpu_bussy_ratio", 404, "no metric", "infertop_gpu_busy_ratio"),
        ("history?metric=infertop_gpu_busy_ratio&from=now&to=-1h", 400, "ends before", "before"),
        ("history?metric=infertop_gpu_busy_ratio&step=often", 400, "cannot read step", ""),
        ("history?metric=infertop_gpu_busy_ratio&from=yesterday", 400, "cannot read from", ""),
        ("history?metric=infertop_gpu_busy_ratio&from=1700000000", 400, "seconds", ""),
        ("window?ticks=0", 400, "cannot look at 0", "1 to 1000"),
        ("window?ticks=many", 400, "cannot read ticks", ""),
        ("neighbour", 400, "at is missing", "at="),
        ("neighbour?at=now&forward=maybe", 400, "cannot read forward", ""),
        ("neighbour?at=0", 404, "no snapshot before", "/v1/span"),
    ] {
        let (found, _, body) = daemon.ask(&format!("GET /v1/{line}"), "").await;
        assert_eq!(found, status, "{line}: {body}");
        assert!(body["error"].as_str().unwrap().contains(error), "{line}: {body}");
        assert!(body["help"].as_str().unwrap().contains(help), "{line}: {body}");
    }
}

#[tokio::test]
async fn a_history_of_all_time_begins_where_something_is_known() {
    let daemon = Daemon::start();
    daemon.remembers(200).await;
    let line =
        format!("GET /v1/history?metric=infertop_gpu_busy_ratio&from=0&to={}", BEGIN + 200_000);
    let (status, _, body) = daemon.ask(&line, "").await;
    assert_eq!(status, 200, "{body}");
    let from_ms = body["from_ms"].as_u64().unwrap();
    assert!(from_ms + 300 * 86_400_000 > BEGIN, "{body}");
    let mean = body["series"][0]["mean"].as_array().unwrap();
    assert!(mean.len() <= 2001 && mean.iter().any(Value::is_number), "{body}");
}

#[tokio::test]
async fn an_empty_store_is_no_error() {
    let daemon = Daemon::start();
    let past = daemon.remembers(0).await;
    let deadline = tokio::time::Instant::now() + PATIENCE;
    // The file is made by another thread.
    while past.span().await.is_err() {
        assert!(tokio::time::Instant::now() < deadline);
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(past.span().await.unwrap(), None);
    assert_eq!(past.at(u64::MAX).await.unwrap(), None);
    let (status, _, body) = daemon.ask("GET /v1/snapshot?at=now", "").await;
    assert_eq!((status, &body["error"]), (404, &"nothing is recorded yet".into()));
}

#[tokio::test]
async fn a_store_that_was_replaced_is_read_anew() {
    let daemon = Daemon::start();
    let past = daemon.remembers(3).await;
    assert!(past.at(u64::MAX).await.unwrap().is_some());
    // As the store does with a file that is damaged.
    let path = daemon.hub.store.path();
    std::fs::rename(&path, path.with_extension("aside")).unwrap();
    let error = past.at(u64::MAX).await.unwrap_err().to_string();
    assert!(error.contains("infertop.db"), "{error}");
}

#[tokio::test]
async fn many_questions_at_once_are_answered_or_told_to_come_again() {
    let daemon = Daemon::start();
    daemon.remembers(60).await;
    let questions: Vec<_> = (0..40)
        .map(|_| {
            let client = daemon.client();
            tokio::spawn(async move {
                Past::Daemon(client).window(BEGIN + 60_000, 60).await.map(|_| ())
            })
        })
        .collect();
    let mut answered = 0;
    for question in questions {
        match question.await.unwrap() {
            Ok(()) => answered += 1,
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("others are looking into the past"), "{error}");
            }
        }
    }
    assert!(answered >= 8, "{answered}");
    daemon.client().health().await.unwrap();
}
