//! The services that follow the log, all of them sick: whatever they are asked, they panic. The feature names the
//! world.

#[cfg(feature = "projector")]
mod projector {
    use noetl_sdk::engine::projector::projecting;
    use projecting::{Change, Segment};

    struct Service;

    noetl_sdk::projector!(Service);

    impl projecting::Guest for Service {
        fn project(_segments: Vec<Segment>) -> Vec<Change> {
            panic!("this projector knows no rows");
        }

        fn expand(_segments: Vec<Segment>) -> Vec<String> {
            panic!("this projector knows no events");
        }
    }
}

#[cfg(feature = "state-builder")]
mod state_builder {
    use noetl_sdk::engine::state_builder::state_building;
    use state_building::{Cutoff, Segment};

    struct Service;

    noetl_sdk::state_builder!(Service);

    impl state_building::Guest for Service {
        fn build(_checkpoint: Option<Vec<u8>>, _segments: Vec<Segment>) -> Result<Vec<u8>, String> {
            panic!("this state builder builds nothing");
        }

        fn view(_segments: Vec<Segment>, _cutoff: Cutoff) -> Result<String, String> {
            panic!("this state builder sees nothing");
        }

        fn explain(_segments: Vec<Segment>) -> Result<String, String> {
            panic!("this state builder explains nothing");
        }
    }
}

#[cfg(feature = "publisher")]
mod publisher {
    use noetl_sdk::engine::publisher::publishing;
    use publishing::{Extent, Message, Plan, ResultOf, Segment};

    struct Service;

    noetl_sdk::publisher!(Service);

    impl publishing::Guest for Service {
        fn tick(_state: Vec<u8>, _time_ms: u64, _tip: u64, _extents: Vec<Extent>, _results: Vec<ResultOf>) -> Plan {
            panic!("this publisher plans nothing");
        }

        fn encode(_segments: Vec<Segment>) -> Vec<Message> {
            panic!("this publisher encodes nothing");
        }
    }
}
