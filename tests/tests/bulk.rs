//! Large data: Arrow buffers cross into a guest and back byte for byte, and a gigabyte moves between
//! objects without entering one.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{DataType, Field, Schema};
use noetl_tests::{Server, guest};

/// An Arrow IPC stream of about this many bytes.
fn arrow(bytes: usize) -> Vec<u8> {
    let schema = Arc::new(Schema::new(vec![Field::new("n", DataType::Int64, false)]));
    let mut writer = StreamWriter::try_new(Vec::new(), &schema).expect("a writer");
    const ROWS: i64 = 128 * 1024;
    let rows = (bytes / 8) as i64;
    let mut from = 0;
    while from < rows {
        let to = (from + ROWS).min(rows);
        let column = Int64Array::from_iter_values(from..to);
        writer.write(&RecordBatch::try_new(schema.clone(), vec![Arc::new(column)]).expect("a batch")).expect("written");
        from = to;
    }
    writer.into_inner().expect("finished")
}

#[tokio::test]
async fn arrow_buffers_of_any_size_come_back_byte_for_byte() {
    let server = Server::start();
    let api = server.admin();
    api.push(guest("echo"), "").await.is(201);
    for size in [1 << 10, 64 << 10, 1 << 20, 16 << 20, 256 << 20] {
        let sent = arrow(size);
        let answer = api.post_bytes("/api/plugins/main/echo:call", sent.clone()).await.is(200);
        assert!(answer.bytes == sent, "{} bytes did not come back as they were", sent.len());
        println!("{} bytes in {} us", sent.len(), answer.header("noetl-duration-us"));
    }
}

#[tokio::test]
async fn a_guest_reads_and_writes_arrow_through_the_sdk() {
    let server = Server::start();
    let api = server.admin();
    api.push(guest("arrow_sum"), "").await.is(201);
    let answer = api.post_bytes("/api/plugins/main/arrow-sum:call", arrow(8 * 1000)).await.is(200);
    let batches: Vec<_> =
        StreamReader::try_new(&answer.bytes[..], None).expect("a stream").collect::<Result<_, _>>().expect("batches");
    let doubled: Vec<i64> = batches
        .iter()
        .flat_map(|batch| {
            let column = batch.column(1).as_any().downcast_ref::<Int64Array>().expect("an int64 column");
            column.values().to_vec()
        })
        .collect();
    assert_eq!(doubled, (0..1000).map(|n| n * 2).collect::<Vec<i64>>());
}

#[tokio::test]
async fn a_gigabyte_is_spliced_between_objects_in_bounded_memory() {
    let server = Server::start();
    let api = server.admin();
    api.push(guest("splice"), "").await.is(201);
    let task = |task: serde_json::Value| {
        let api = api.clone();
        async move { api.post_bytes("/api/plugins/main/splice:call", task.to_string().into()).await.is(200).json() }
    };
    let made = task(serde_json::json!({"make": "a", "mib": 512})).await;
    assert_eq!(made["size"], 512u64 << 20);
    let joined = task(serde_json::json!({"concat": ["a", "a"], "to": "b"})).await;
    assert_eq!(joined["size"], 1u64 << 30);
    let copied = task(serde_json::json!({"from": "b", "to": "c"})).await;
    assert_eq!(copied["size"], 1u64 << 30);
    assert_eq!(copied["digest"], joined["digest"]);
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("the server runs");
    let peak = status.lines().find(|line| line.starts_with("VmHWM:")).expect("every process has it");
    let kib: u64 = peak.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number");
    println!("most memory the server ever had: {} MiB", kib >> 10);
    assert!(kib < 300 << 10, "a gigabyte must not pass through memory: {peak}");
}
