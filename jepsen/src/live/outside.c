/*
 * What is done to a member from outside, because it takes system calls that Rust has no safe words for.
 *
 *   outside cut FLAG DIRECTORY... [-- PROCESS...]
 *       stops the processes and ends the file systems at DIRECTORY... as a power cut does
 *   outside without-fsync PROGRAM ...
 *       runs PROGRAM with fsync and its like doing nothing and saying "done"
 *   outside supervise CONTROL PROGRAM ...
 *       runs PROGRAM with the faults of fsync and of the wall clock that the file CONTROL names (see supervise.c)
 */
#define _GNU_SOURCE
#include "outside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* From fs/ext4/ext4.h: _IOR('X', 125, __u32). */
#define SHUT_DOWN _IOR('X', 125, uint32_t)

static int cut(uint32_t flag, int words, char **dirs) {
    int files[16], count = 0;
    while (count < words && strcmp(dirs[count], "--") != 0)
        count++;
    if (count > 16) {
        fprintf(stderr, "at most 16 at once\n");
        return 1;
    }
    /* All are opened first, so that nothing but the calls themselves lies between the first and the last. */
    for (int i = 0; i < count; i++) {
        files[i] = open(dirs[i], O_RDONLY | O_DIRECTORY);
        if (files[i] < 0) {
            fprintf(stderr, "%s: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    /*
     * From here on the processes execute nothing, as it is where the power is gone. Without that they would see an
     * fsync that was under way return 0 although nothing was written: ext4 says so while it shuts down.
     */
    for (int i = count + 1; i < words; i++) {
        if (kill((pid_t)strtol(dirs[i], NULL, 10), SIGSTOP) != 0) {
            fprintf(stderr, "process %s can't be stopped: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    for (int i = 0; i < count; i++) {
        if (ioctl(files[i], SHUT_DOWN, &flag) != 0) {
            fprintf(stderr, "%s can't be shut down: %s\n", dirs[i], strerror(errno));
            return 1;
        }
    }
    return 0;
}

#define NOTHING(call) \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 0)

static int without_fsync(char **words) {
    /* An error number of 0: the call isn't made, and its caller is told that it went well. */
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        NOTHING(__NR_fsync),
        NOTHING(__NR_fdatasync),
        NOTHING(__NR_sync),
        NOTHING(__NR_syncfs),
        NOTHING(__NR_msync),
#ifdef __NR_sync_file_range
        NOTHING(__NR_sync_file_range),
#endif
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
        || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
        fprintf(stderr, "fsync can't be taken away: %s\n", strerror(errno));
        return 1;
    }
    execv(words[0], words);
    fprintf(stderr, "%s: %s\n", words[0], strerror(errno));
    return 1;
}

int main(int count, char **words) {
    if (count >= 4 && strcmp(words[1], "cut") == 0)
        return cut((uint32_t)strtoul(words[2], NULL, 10), count - 3, words + 3);
    if (count >= 3 && strcmp(words[1], "without-fsync") == 0)
        return without_fsync(words + 2);
    if (count >= 4 && strcmp(words[1], "supervise") == 0)
        return supervise(words[2], words + 3);
    fprintf(stderr, "usage: outside cut FLAG DIRECTORY... | without-fsync PROGRAM ... | supervise CONTROL PROGRAM ...\n");
    return 2;
}
