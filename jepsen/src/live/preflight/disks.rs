//! Attempts with disks: ext4 in an image on a loop device.

use anyhow::Result;

use super::scratch::Scratch;

/// Makes and mounts the file system `disk`.
const DISK: &str = "
    export LC_ALL=C; rm -f image; truncate -s 64M image; mkfs.ext4 -q -F image; mkdir -p disk
    mount -o loop image disk
    ";

pub(super) fn loops(scratch: &Scratch) -> Result<String> {
    with_disk(
        scratch,
        "echo 'mounted twice' > disk/file; sync disk/file
        umount disk; mount -o loop image disk; cat disk/file",
    )
}

pub(super) fn power_cut(scratch: &Scratch) -> Result<String> {
    let script = r#"
        echo kept > disk/kept; sync disk disk/kept
        echo lost > disk/lost
        "$1" cut 2 disk --
        if touch disk/more 2> more; then echo 'writes work after a power cut' >&2; exit 1; fi
        umount disk; mount -o loop image disk
        if [ -s disk/lost ]; then echo 'unsynced data outlives a power cut' >&2; exit 1; fi
        [ "$(cat disk/kept)" = kept ]
        echo 'synced data remains, unsynced data is lost'
        "#;
    with_disk(scratch, script)
}

pub(super) fn freeze(scratch: &Scratch) -> Result<String> {
    let script = "
        fsfreeze --freeze disk; trap 'fsfreeze --unfreeze disk' EXIT
        touch disk/late & sleep 0.1
        if [ -e disk/late ]; then echo 'a frozen disk is written' >&2; exit 1; fi
        fsfreeze --unfreeze disk; trap - EXIT
        wait; [ -e disk/late ]; echo 'a write waits until the disk is thawed'
        ";
    with_disk(scratch, script)
}

pub(super) fn full(scratch: &Scratch) -> Result<String> {
    let script = "
        fallocate -l 1G disk/filler 2> full || dd if=/dev/zero of=disk/filler bs=1M 2> full || true
        if dd if=/dev/zero of=disk/more bs=1M count=4 2> full; then echo 'the disk has room' >&2; exit 1; fi
        rm disk/filler; echo more > disk/more; grep -o 'No space left on device' full
        ";
    with_disk(scratch, script)
}

fn with_disk(scratch: &Scratch, script: &str) -> Result<String> {
    scratch.mounts(&format!("{DISK}{script}"))
}
