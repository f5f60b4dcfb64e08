//! A disk in memory that loses power.
//!
//! Writes that were not synced are kept aside. When the power goes, every one of them is cut into pieces of
//! arbitrary length, an arbitrary subset of the pieces reaches the platter, in arbitrary order. Of the creates,
//! renames and removes since the last sync of the folder, an arbitrary number of the oldest survive. After
//! the cut every call fails, until `restart` gives the disk that the next process finds.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;

use super::disk::{Disk, DiskFile};

/// Small, repeatable random numbers (splitmix64).
#[derive(Debug, Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The write of a range fails after an arbitrary part of it was taken.
    Write,
    /// The sync of a file fails; an arbitrary part of what was to be synced is lost without a trace.
    Sync,
    /// There is no room for a new file.
    Full,
    /// A rename fails.
    Rename,
}

#[derive(Debug, Clone)]
enum Change {
    Named(String, Arc<Mutex<Content>>),
    Renamed(String, String),
    Removed(String),
}

#[derive(Debug, Default)]
struct Content {
    /// What a reader sees.
    seen: Vec<u8>,
    /// What has reached the platter.
    platter: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
}

type Names = BTreeMap<String, Arc<Mutex<Content>>>;

#[derive(Debug)]
struct State {
    names: Names,
    durable_names: Names,
    unsynced_names: Vec<Change>,
    random: Random,
    /// Power goes at the operation that finds 0 here.
    operations_left: Option<u64>,
    fault: Option<(u64, Fault)>,
    dead: bool,
}

#[derive(Debug, Clone)]
pub struct ModelDisk(Arc<Mutex<State>>);

struct ModelFile {
    disk: Weak<Mutex<State>>,
    content: Arc<Mutex<Content>>,
}

impl Content {
    fn put(target: &mut Vec<u8>, offset: usize, data: &[u8]) {
        if target.len() < offset + data.len() {
            target.resize(offset + data.len(), 0);
        }
        target[offset..offset + data.len()].copy_from_slice(data);
    }

    /// Lets an arbitrary part of what is not synced reach the platter.
    fn tear(&mut self, random: &mut Random) {
        let mut pieces = Vec::new();
        for (offset, data) in std::mem::take(&mut self.unsynced) {
            let grain = [1, 7, 64, 512, 4096][random.below(5) as usize];
            let mut at = 0;
            while at < data.len() {
                let length = (1 + random.below(2 * grain) as usize).min(data.len() - at);
                pieces.push((offset + at, data[at..at + length].to_vec()));
                at += length;
            }
        }
        let kept = [0, 20, 50, 90, 100][random.below(5) as usize];
        for at in (1..pieces.len()).rev() {
            pieces.swap(at, random.below(at as u64 + 1) as usize);
        }
        for (offset, data) in pieces {
            if random.chance(kept) {
                Self::put(&mut self.platter, offset, &data);
            }
        }
    }
}

fn apply(names: &mut Names, change: &Change) {
    match change {
        Change::Named(name, content) => drop(names.insert(name.clone(), Arc::clone(content))),
        Change::Renamed(from, to) => {
            if let Some(content) = names.remove(from) {
                names.insert(to.clone(), content);
            }
        }
        Change::Removed(name) => drop(names.remove(name)),
    }
}

impl State {
    fn step(&mut self) -> io::Result<()> {
        if self.operations_left == Some(0) {
            self.dead = true;
        }
        if self.dead {
            return Err(io::Error::other("the power is off"));
        }
        self.operations_left = self.operations_left.map(|left| left - 1);
        Ok(())
    }

    /// Whether an operation that can have this fault has it now.
    fn fails(&mut self, kind: Fault) -> bool {
        match &mut self.fault {
            Some((0, fault)) if *fault == kind => {
                self.fault = None;
                true
            }
            Some((left, fault)) if *fault == kind => {
                *left -= 1;
                false
            }
            _ => false,
        }
    }

    fn change(&mut self, change: Change) {
        apply(&mut self.names, &change);
        self.unsynced_names.push(change);
    }
}

impl ModelDisk {
    pub fn new(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(State {
            names: Names::new(),
            durable_names: Names::new(),
            unsynced_names: Vec::new(),
            random: Random(seed),
            operations_left: None,
            fault: None,
            dead: false,
        })))
    }

    pub fn lose_power_after(&self, operations: u64) {
        self.0.lock().operations_left = Some(operations);
    }

    /// The operation of that kind after `passed` good ones fails.
    pub fn fail_after(&self, passed: u64, fault: Fault) {
        self.0.lock().fault = Some((passed, fault));
    }

    pub fn is_dead(&self) -> bool {
        self.0.lock().dead
    }

    /// The disk as the next process finds it after a power cut.
    pub fn restart(&self) -> Self {
        let mut state = self.0.lock();
        state.dead = true;
        let mut names = state.durable_names.clone();
        let unsynced = state.unsynced_names.len() as u64;
        let survive = state.random.below(unsynced + 1) as usize;
        let mut random = state.random.clone();
        for change in &state.unsynced_names[..survive] {
            apply(&mut names, change);
        }
        for content in names.values() {
            let mut content = content.lock();
            content.tear(&mut random);
            content.seen = content.platter.clone();
        }
        // New contents, so that handles of the dead process lead nowhere.
        let fresh = |content: &Arc<Mutex<Content>>| {
            let platter = content.lock().platter.clone();
            Arc::new(Mutex::new(Content { seen: platter.clone(), platter, unsynced: Vec::new() }))
        };
        let names: Names = names.iter().map(|(name, content)| (name.clone(), fresh(content))).collect();
        Self(Arc::new(Mutex::new(State {
            durable_names: names.clone(),
            names,
            unsynced_names: Vec::new(),
            random,
            operations_left: None,
            fault: None,
            dead: false,
        })))
    }

    /// Changes bytes behind everybody's back.
    pub fn damage(&self, name: &str, offset: usize, with: &[u8]) {
        let state = self.0.lock();
        let mut content = state.names[name].lock();
        Content::put(&mut content.seen, offset, with);
        Content::put(&mut content.platter, offset, with);
    }
}

impl Disk for ModelDisk {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.0.lock();
        state.step()?;
        let content = Arc::new(Mutex::new(Content::default()));
        state.change(Change::Named(name.to_owned(), Arc::clone(&content)));
        Ok(Arc::new(ModelFile { disk: Arc::downgrade(&self.0), content }))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let state = self.0.lock();
        let content = state.names.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Arc::new(ModelFile { disk: Arc::downgrade(&self.0), content: Arc::clone(content) }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        if state.fails(Fault::Rename) {
            return Err(io::Error::other("injected: rename"));
        }
        state.change(Change::Renamed(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        if !state.names.contains_key(name) {
            return Err(io::ErrorKind::NotFound.into());
        }
        state.change(Change::Removed(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.step()?;
        state.unsynced_names.clear();
        state.durable_names = state.names.clone();
        Ok(())
    }

    fn label(&self, name: &str) -> String {
        name.to_owned()
    }
}

impl ModelFile {
    fn disk(&self) -> io::Result<Arc<Mutex<State>>> {
        self.disk.upgrade().ok_or_else(|| io::Error::other("the disk is gone"))
    }
}

impl DiskFile for ModelFile {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let content = self.content.lock();
        let offset = offset as usize;
        let bytes = content.seen.get(offset..offset + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        let disk = self.disk()?;
        let mut state = disk.lock();
        let mut content = self.content.lock();
        let taken = if let Err(error) = state.step() {
            // The write during which the power goes may have begun.
            content.unsynced.push((offset as usize, data.to_vec()));
            return Err(error);
        } else if state.fails(Fault::Write) {
            state.random.below(data.len() as u64 + 1) as usize
        } else {
            data.len()
        };
        content.unsynced.push((offset as usize, data[..taken].to_vec()));
        Content::put(&mut content.seen, offset as usize, &data[..taken]);
        if taken < data.len() { Err(io::Error::other("injected: write")) } else { Ok(()) }
    }

    fn reserve(&self, size: u64) -> io::Result<()> {
        let full = self.disk()?.lock().fails(Fault::Full);
        if full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.write_at(&vec![0; size as usize], 0)?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        let disk = self.disk()?;
        let mut state = disk.lock();
        let mut content = self.content.lock();
        // When the power goes during a sync, some of it arrives: that is what `restart` does.
        state.step()?;
        if state.fails(Fault::Sync) {
            let mut random = state.random.clone();
            content.tear(&mut random);
            state.random = random;
            return Err(io::Error::other("injected: sync"));
        }
        for (offset, data) in std::mem::take(&mut content.unsynced) {
            Content::put(&mut content.platter, offset, &data);
        }
        Ok(())
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.content.lock().seen.len() as u64)
    }
}
