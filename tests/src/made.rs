//! Components made by hand, for what no honest compiler emits.
//!
//! A core module in text is given the interface of the world `transform` and wrapped into a component, so that it is
//! a plugin in every respect but its manners. In such a module `run` takes the place and length of its input and
//! answers with the place of its result, laid out as the canonical ABI has it: a tag, then at offset 4 the place and
//! length of the bytes, or of the code and the message of a failure.

use noetl_contract::manifest::replace;
use wasm_encoder::{
    CodeSection, Encode as _, ExportKind, ExportSection, Function, FunctionSection, MemorySection, MemoryType, Module,
    TypeSection, ValType,
};
use wit_component::{ComponentEncoder, StringEncoding, dummy_module, embed_component_metadata};
use wit_parser::{ManglingAndAbi, Resolve, WorldId};

/// `plugin.toml` of a hand-made plugin; `extra` is further text at its end.
pub fn manifest(path: &str, capabilities: &[&str], extra: &str) -> String {
    format!("path = \"{path}\"\nversion = \"1.0.0\"\nworld = \"transform\"\ncapabilities = {capabilities:?}\n{extra}")
}

/// The contract, and beside it a world that has everything `transform` has and what `more` says.
fn world_with(packages: &[&str], more: &str) -> (Resolve, WorldId) {
    let mut resolve = Resolve::default();
    for source in noetl_contract::packages::SOURCES {
        resolve.push_source(source.file, source.text).expect("the contract resolves");
    }
    for (number, text) in packages.iter().enumerate() {
        resolve.push_source(&format!("more-{number}.wit"), text).expect("WIT of the test");
    }
    let text = format!("package made:up; world one {{ include noetl:worlds/transform@0.1.0; {more} }}");
    let package = resolve.push_source("made.wit", &text).expect("WIT of the test");
    let world = resolve.packages[package].worlds["one"];
    (resolve, world)
}

fn wrap(mut module: Vec<u8>, resolve: &Resolve, world: WorldId, manifest: &str) -> Vec<u8> {
    embed_component_metadata(&mut module, resolve, world, StringEncoding::UTF8).expect("metadata");
    let component = ComponentEncoder::default().module(&module).expect("a module").encode().expect("a component");
    replace(&component, manifest).expect("a component")
}

/// A transform whose core module is this text.
pub fn transform(wat: &str, manifest: &str) -> Vec<u8> {
    let (resolve, world) = world_with(&[], "");
    wrap(wat::parse_str(wat).expect("text of a module"), &resolve, world, manifest)
}

/// A transform with more imports and exports, all of them stubs.
pub fn stub(packages: &[&str], more: &str, manifest: &str) -> Vec<u8> {
    let (resolve, world) = world_with(packages, more);
    wrap(dummy_module(&resolve, world, ManglingAndAbi::Standard32), &resolve, world, manifest)
}

/// What every module of [`transform`] needs beside its `run`: a memory and an allocator that never frees.
const COMMON: &str = r#"
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 4096))
    (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
        (local $at i32)
        (local.set $at (i32.and (i32.add (global.get $next) (i32.const 15)) (i32.const -16)))
        (global.set $next (i32.add (local.get $at) (local.get 3)))
        (block $fits
            (br_if $fits (i32.le_u (global.get $next) (i32.shl (memory.size) (i32.const 16))))
            (drop (memory.grow (i32.add (i32.shr_u (local.get 3) (i32.const 16)) (i32.const 1)))))
        (local.get $at))
"#;

/// Answers with whatever its input says is at the place of the result: the guest hands the host any value, well formed
/// or not.
pub fn any_answer(manifest: &str) -> Vec<u8> {
    let text = format!(
        "(module {COMMON} (func (export \"run\") (param $at i32) (param $size i32) (result i32) (local.get $at)))"
    );
    transform(&text, manifest)
}

/// Calls the host with arguments taken from its input, five numbers at a time, and then answers as [`any_answer`].
/// The arguments are places and lengths, so most of them are lies.
pub fn any_arguments(manifest: &str) -> Vec<u8> {
    let word = |at: u32| format!("(i32.load offset={at} (local.get $at))");
    let five: String = (0..5).map(|number| word(number * 4)).collect();
    let four: String = (1..5).map(|number| word(number * 4)).collect();
    let text = format!(
        r#"(module
            (import "noetl:log/log@0.1.0" "write" (func $write (param i32 i32 i32 i32 i32)))
            (import "noetl:kv/kv@0.1.0" "put" (func $put (param i32 i32 i32 i32 i32)))
            {COMMON}
            (func (export "run") (param $at i32) (param $size i32) (result i32)
                (if (i32.lt_u (local.get $size) (i32.const 24)) (then (return (local.get $at))))
                (if (i32.and (i32.load8_u offset=20 (local.get $at)) (i32.const 1))
                    (then (call $write {five}))
                    (else (call $put {four} (i32.const 64))))
                (i32.add (local.get $at) (i32.const 20))))"#
    );
    transform(&text, manifest)
}

/// Where the request of [`any_request`] ends, and its answer begins.
pub const REQUEST: usize = 68;

/// Asks the host for something larger with arguments taken from its input: runs a script, sends a request, or reads and copies
/// ranges of a payload, as byte 64 says. The request of a script is laid out as the canonical ABI has it, the others are
/// numbers one after the other. Then answers as [`any_answer`].
pub fn any_request(manifest: &str) -> Vec<u8> {
    let ten: String = (0..10).map(|number| format!("(i32.load offset={} (local.get $at))", number * 4)).collect();
    let text = format!(
        r#"(module
            (import "noetl:sql/sql@0.1.0" "run" (func $run_script (param i32 i32)))
            (import "noetl:http-client/http-client@0.1.0" "send"
                (func $send (param i32 i32 i32 i32 i32 i32 i32 i32 i32 i32 i32)))
            (import "noetl:payload/payload@0.1.0" "[constructor]writer" (func $writer (param i32 i32) (result i32)))
            (import "noetl:payload/payload@0.1.0" "[method]writer.write" (func $write (param i32 i32 i32 i32)))
            (import "noetl:payload/payload@0.1.0" "[static]writer.finish" (func $finish (param i32 i32)))
            (import "noetl:payload/payload@0.1.0" "[method]writer.splice" (func $splice (param i32 i32 i64 i64 i32)))
            (import "noetl:payload/payload@0.1.0" "[method]payload.read" (func $read (param i32 i64 i32 i32)))
            {COMMON}
            (func $ranges (param $at i32)
                (local $writer i32) (local $payload i32)
                (local.set $writer (call $writer (i32.const 0) (i32.const 0)))
                (call $write (local.get $writer) (local.get $at) (i32.const {REQUEST}) (i32.const 1024))
                (call $finish (local.get $writer) (i32.const 1024))
                (local.set $payload (i32.load (i32.const 1032)))
                (call $read (local.get $payload) (i64.load (local.get $at)) (i32.load offset=8 (local.get $at))
                    (i32.const 1024))
                (call $splice (call $writer (i32.const 0) (i32.const 0)) (local.get $payload)
                    (i64.load offset=16 (local.get $at)) (i64.load offset=24 (local.get $at)) (i32.const 1024)))
            (func (export "run") (param $at i32) (param $size i32) (result i32)
                (local $which i32)
                (if (i32.lt_u (local.get $size) (i32.const {REQUEST})) (then (return (local.get $at))))
                (local.set $which (i32.load8_u offset=64 (local.get $at)))
                (if (i32.eqz (local.get $which)) (then (call $run_script (local.get $at) (i32.const 1024)))
                    (else (if (i32.eq (local.get $which) (i32.const 1)) (then (call $send {ten} (i32.const 1024)))
                        (else (call $ranges (local.get $at))))))
                (i32.add (local.get $at) (i32.const {REQUEST}))))"#
    );
    transform(&text, manifest)
}

/// A module of [`transform`] with further parts and the body of `run`.
pub fn with_parts(parts: &str, run: &str, manifest: &str) -> Vec<u8> {
    let text = format!("(module {COMMON} {parts} (func (export \"run\") (param i32 i32) (result i32) {run}))");
    transform(&text, manifest)
}

/// A component that makes more instances of a core module before it is called, each with what is its own, such as a memory.
pub fn with_instances(component: &[u8], module: &str, count: u32) -> Vec<u8> {
    const HEADER: usize = 8;
    const MODULE: u8 = 1;
    const INSTANCE: u8 = 2;
    // Sections follow each other and each index space only grows, so what comes last disturbs nothing.
    let (mut at, mut modules) = (HEADER, 0);
    while at < component.len() {
        modules += u32::from(component[at] == MODULE);
        let (size, length) = leb128(&component[at + 1..]);
        at += 1 + length + size;
    }
    let mut more = component.to_vec();
    let mut section = |id: u8, content: &[u8]| {
        more.push(id);
        content.encode(&mut more);
    };
    section(MODULE, &wat::parse_str(module).expect("text of a module"));
    let mut instances = Vec::new();
    count.encode(&mut instances);
    for _ in 0..count {
        // Of that module, without arguments.
        instances.push(0);
        modules.encode(&mut instances);
        instances.push(0);
    }
    section(INSTANCE, &instances);
    more
}

/// A number and how many bytes it takes.
fn leb128(bytes: &[u8]) -> (usize, usize) {
    let length = bytes.iter().take_while(|byte| **byte & 0x80 != 0).count() + 1;
    let value = bytes[..length].iter().rev().fold(0, |value, byte| value << 7 | usize::from(byte & 0x7f));
    (value, length)
}

/// As [`with_parts`], of a component that says something about itself; `parts` has the function.
pub fn described(parts: &str, run: &str, manifest: &str) -> Vec<u8> {
    let text = format!("(module {COMMON} {parts} (func (export \"run\") (param i32 i32) (result i32) {run}))");
    let (resolve, world) = world_with(&[], "export noetl:describe/describing@0.1.0;");
    wrap(wat::parse_str(&text).expect("text of a module"), &resolve, world, manifest)
}

/// Many long functions: a component that takes far longer to compile than to send.
pub fn compile_bomb(functions: u32, steps: u32, manifest: &str) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([ValType::I32, ValType::I32], [ValType::I32]);
    types.ty().function([ValType::I32; 4], [ValType::I32]);
    let (mut declared, mut code) = (FunctionSection::new(), CodeSection::new());
    for number in 0..functions {
        declared.function(0);
        let mut body = Function::new([(8, ValType::I32)]);
        for step in 0..steps {
            // Every value depends on two earlier ones, so that nothing folds and all registers are wanted.
            let (a, b) = ((step + number) % 10, (step * 7 + 3) % 10);
            body.instructions().local_get(a).local_get(b).i32_rotl().local_get(a).i32_mul().local_set(2 + step % 8);
        }
        body.instructions().local_get(2).end();
        code.function(&body);
    }
    declared.function(1);
    let mut realloc = Function::new([]);
    realloc.instructions().i32_const(1024).end();
    code.function(&realloc);
    let mut memories = MemorySection::new();
    memories.memory(MemoryType { minimum: 1, maximum: None, memory64: false, shared: false, page_size_log2: None });
    let mut exports = ExportSection::new();
    exports.export("memory", ExportKind::Memory, 0);
    exports.export("run", ExportKind::Func, 0);
    exports.export("cabi_realloc", ExportKind::Func, functions);
    let mut module = Module::new();
    module.section(&types).section(&declared).section(&memories).section(&exports).section(&code);
    let (resolve, world) = world_with(&[], "");
    wrap(module.finish(), &resolve, world, manifest)
}
