//! Names whose owner answers differently every time they are looked up: with a place that is permitted while the check
//! is made, and with another one for the connection.
//!
//! The server asks a name server of ours, as its `/etc/resolv.conf` is another file in a mount namespace of its own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use tempfile::NamedTempFile;
use tokio::net::UdpSocket;

use crate::egress::{Upstream, denied, hello, hostile};
use crate::scene::{HOSTILE, Scene};

/// Resolvers ask at port 53 and at no other.
const NAME_SERVER: (&str, u16) = ("127.53.53.53", 53);
const IPV4: u16 = 1;

/// What each lookup of a name is answered with, the last one from there on.
type Answers = BTreeMap<&'static str, Vec<Vec<Ipv4Addr>>>;

struct Names {
    asked: Arc<Mutex<BTreeMap<String, usize>>>,
    resolv_conf: NamedTempFile,
}

impl Names {
    async fn serve(answers: Answers) -> Self {
        let socket = UdpSocket::bind(NAME_SERVER).await.expect("port 53: these tests run as root");
        let asked = Arc::new(Mutex::new(BTreeMap::new()));
        let counted = asked.clone();
        tokio::spawn(async move {
            let mut packet = [0; 512];
            while let Ok((count, from)) = socket.recv_from(&mut packet).await {
                let Some(question) = Question::read(&packet[..count]) else { continue };
                let mut found: &[Ipv4Addr] = &[];
                if question.kind == IPV4 {
                    let mut counted = counted.lock().expect("nobody panics here");
                    let before = counted.entry(question.name.clone()).or_insert(0);
                    let of_name = answers.get(question.name.as_str()).map(Vec::as_slice).unwrap_or_default();
                    found = of_name.get(*before).or(of_name.last()).map(Vec::as_slice).unwrap_or_default();
                    *before += 1;
                }
                let _ = socket.send_to(&question.answer(found), from).await;
            }
        });
        let mut resolv_conf = NamedTempFile::new().expect("a file");
        writeln!(resolv_conf, "nameserver {}", NAME_SERVER.0).expect("written");
        Self { asked, resolv_conf }
    }

    fn asked(&self, name: &str) -> usize {
        self.asked.lock().expect("nobody panics here").get(name).copied().unwrap_or(0)
    }

    /// The command, run where our name server is the only one.
    fn inside(&self, command: Command) -> Command {
        let mut inside = Command::new("unshare");
        inside.args(["--map-root-user", "--mount", "sh", "-c"]);
        inside.arg("mount --bind \"$0\" /etc/resolv.conf && exec \"$@\"").arg(self.resolv_conf.path());
        inside.arg(command.get_program()).args(command.get_args());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        inside.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        inside
    }
}

/// The one question of a query.
struct Question<'a> {
    name: String,
    kind: u16,
    id: &'a [u8],
    bytes: &'a [u8],
}

impl<'a> Question<'a> {
    fn read(packet: &'a [u8]) -> Option<Self> {
        let (mut at, mut labels) = (12, Vec::new());
        loop {
            let length = usize::from(*packet.get(at)?);
            at += 1;
            if length == 0 {
                break;
            }
            labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).into_owned());
            at += length;
        }
        let kind = u16::from_be_bytes(packet.get(at..at + 2)?.try_into().ok()?);
        Some(Self { name: labels.join("."), kind, id: packet.get(..2)?, bytes: packet.get(12..at + 4)? })
    }

    /// Every address lives for zero seconds.
    fn answer(&self, found: &[Ipv4Addr]) -> Vec<u8> {
        let count = u8::try_from(found.len()).expect("a few");
        let mut packet = self.id.to_vec();
        packet.extend([0x81, 0x80, 0, 1, 0, count, 0, 0, 0, 0]);
        packet.extend(self.bytes);
        for address in found {
            packet.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4]);
            packet.extend(address.octets());
        }
        packet
    }
}

#[tokio::test]
async fn a_name_that_changes_its_meaning_leads_only_where_it_was_checked() {
    const HERE: Ipv4Addr = Ipv4Addr::LOCALHOST;
    const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
    const METADATA: Ipv4Addr = Ipv4Addr::new(169, 254, 169, 254);
    let names = Names::serve(BTreeMap::from([
        ("turns.example", vec![vec![HERE], vec![ELSEWHERE]]),
        ("late.example", vec![vec![HERE], vec![METADATA]]),
        ("mixed.example", vec![vec![HERE, METADATA]]),
        ("sly.example", vec![vec![HERE, ELSEWHERE, METADATA]]),
    ]))
    .await;
    let here = Upstream::start_at("127.0.0.1:0", hello()).await;
    let port = here.url.rsplit(':').next().expect("a port").to_owned();
    let elsewhere = Upstream::start_at(&format!("127.0.0.2:{port}"), hello()).await;
    let open = [("NOETL_POLICY_HTTP_PRIVATE_ADDRESSES", "true")];
    let scene = Scene::start_in(&open, |server| names.inside(server)).await;
    scene.mallory.push(hostile(&["*.example"]), "").await.is(201);
    let fetch = |name: &str| format!("fetch:http://{name}:{port}/");

    // One lookup is both: what is checked, and where the connection goes.
    let answered = scene.mallory.call(HOSTILE, &fetch("turns.example")).await.is(200);
    assert_eq!((answered.text().as_str(), names.asked("turns.example")), ("200 hello", 1));
    assert_eq!((here.seen().len(), elsewhere.seen().len()), (1, 0), "the second answer was never asked for");

    scene.mallory.call(HOSTILE, &fetch("late.example")).await.is(200);
    scene
        .attack("a name that turns into a metadata service", || async {
            denied(&scene, &fetch("late.example")).await;
            denied(&scene, &fetch("mixed.example")).await;
            denied(&scene, &fetch("sly.example")).await
        })
        .await;
    assert_eq!((here.seen().len(), elsewhere.seen().len()), (2, 0), "no other connection was made");
}
