//! Host side of the WIT packages, generated at build time.
//!
//! One world is enough: `tool` imports every capability there is, and the exports of both worlds are
//! called through typed functions. Functions that only touch memory or the index are synchronous so that
//! the pure engine, which has no fibers, can link them too.

wasmtime::component::bindgen!({
    world: "noetl:worlds/tool",
    path: [
        "../../wit/log/0.1.0",
        "../../wit/metrics/0.1.0",
        "../../wit/clock/0.1.0",
        "../../wit/random/0.1.0",
        "../../wit/kv/0.1.0",
        "../../wit/payload/0.1.0",
        "../../wit/objects/0.1.0",
        "../../wit/http-client/0.1.0",
        "../../wit/secrets/0.1.0",
        "../../wit/files/0.1.0",
        "../../wit/sql/0.1.0",
        "../../wit/nats/0.1.0",
        "../../wit/process/0.1.0",
        "../../wit/worlds/0.1.0",
    ],
    imports: {
        "noetl:payload/payload": async | trappable,
        "noetl:objects/objects": async | trappable,
        "noetl:http-client/http-client": async | trappable,
        "noetl:secrets/secrets": async | trappable,
        "noetl:files/files": async | trappable,
        "noetl:sql/sql": async | trappable,
        "noetl:nats/nats": async | trappable,
        "noetl:process/process": async | trappable,
        default: trappable,
    },
    with: {
        "noetl:payload/payload.payload": crate::caps::payload::Payload,
        "noetl:payload/payload.writer": crate::caps::payload::Writer,
    },
    require_store_data_send: true,
});
