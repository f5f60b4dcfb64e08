//! The few things the log asks of a disk, as a trait, so that the same code runs on a real folder and, in
//! tests, on a model that loses power.
//!
//! What the log relies on, and nothing more:
//! 1. After `sync` answers `Ok`, everything written to that file before is durable.
//! 2. After `sync_folder` answers `Ok`, every create, rename and remove before it is durable; until then
//!    those may be undone by a power cut, but only the newest ones first.
//! 3. Without `sync`, any part of a write may be lost, torn at any byte, in any order.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

/// One folder of files with flat names.
pub trait Disk: Send + Sync + 'static {
    /// A new empty file for reading and writing; one of that name is emptied.
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    /// An existing file for reading and writing.
    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>>;
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    fn list(&self) -> io::Result<Vec<String>>;
    fn sync_folder(&self) -> io::Result<()>;
    /// How a message names the file to a person.
    fn label(&self, name: &str) -> String;
}

/// One open file, addressed by offset; shared freely between threads.
pub trait DiskFile: Send + Sync {
    /// Fills `buffer` or fails with `UnexpectedEof`.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;
    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()>;
    /// Makes the file `size` bytes of zeros in blocks that are written, not merely promised: a later write
    /// inside them then changes no metadata, and `sync` costs one disk flush and no journal commit.
    fn reserve(&self, size: u64) -> io::Result<()>;
    fn sync(&self) -> io::Result<()>;
    fn size(&self) -> io::Result<u64>;
}

/// A folder of the file system.
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    pub fn open(path: PathBuf) -> io::Result<Self> {
        crate::folder::create_folder_durably(&path)?;
        Ok(Self { path })
    }
}

impl Disk for Folder {
    fn create(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(self.path.join(name))?;
        Ok(Arc::new(file))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn DiskFile>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            if let Ok(name) = entry?.file_name().into_string() {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn sync_folder(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    fn label(&self, name: &str) -> String {
        self.path.join(name).display().to_string()
    }
}

/// Zeros are written in pieces of this size.
const PIECE: usize = 1 << 20;

impl DiskFile for File {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write_at(&self, data: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(data, offset)
    }

    fn reserve(&self, size: u64) -> io::Result<()> {
        // Asking for the whole range first makes a full disk fail before anything is written and keeps the
        // blocks together. Not every file system can; the zeros below allocate in any case.
        let asked = rustix::fs::fallocate(self, rustix::fs::FallocateFlags::empty(), 0, size);
        if let Err(full @ (rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT)) = asked {
            return Err(full.into());
        }
        let zeros = vec![0; PIECE];
        let mut offset = 0;
        while offset < size {
            let piece = usize::try_from(size - offset).map_or(PIECE, |left| left.min(PIECE));
            self.write_all_at(&zeros[..piece], offset)?;
            offset += piece as u64;
        }
        self.sync_all()
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }
}
