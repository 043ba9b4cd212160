/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A preloaded library (LD_PRELOAD) that counts the calls that allocate memory or start a thread,
 * from main() on, and makes one of them fail.
 *
 *     LONGHAUL_FAIL=N      the N-th call fails, and no other
 *     LONGHAUL_FAIL=N+     the N-th call fails, and every later one
 *     LONGHAUL_CALLS=FILE  at exit FILE gets the number of calls
 *
 * Child processes of the program are not affected. The C library's own internal allocations are not
 * counted.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*MainFunc)(int argc, char **argv, char **environment);

/* The C library's own functions, under names that need no lookup (which would allocate). */
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

static MainFunc main_of_program;
static atomic_bool counting;
static atomic_ulong calls;
static unsigned long fail_at;
static bool fail_on;

/* Stores the next library's function @name in the pointer at @function. */
static void
find_next(const char *name, void *function)
{
    void *found = dlsym(RTLD_NEXT, name);

    memcpy(function, &found, sizeof(found));
}

/* Whether this call must fail. */
static bool
fails(void)
{
    unsigned long call;

    if (!atomic_load_explicit(&counting, memory_order_relaxed))
        return false;
    call = atomic_fetch_add(&calls, 1) + 1;
    if (fail_at == 0 || (fail_on ? call < fail_at : call != fail_at))
        return false;
    errno = ENOMEM;
    return true;
}

void *
malloc(size_t bytes)
{
    return fails() ? NULL : __libc_malloc(bytes);
}

void *
calloc(size_t count, size_t bytes)
{
    return fails() ? NULL : __libc_calloc(count, bytes);
}

void *
realloc(void *memory, size_t bytes)
{
    return fails() ? NULL : __libc_realloc(memory, bytes);
}

int
posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    void *got = fails() ? NULL : __libc_memalign(alignment, bytes);

    if (got == NULL)
        return ENOMEM;
    *memory = got;
    return 0;
}

void *
aligned_alloc(size_t alignment, size_t bytes)
{
    return fails() ? NULL : __libc_memalign(alignment, bytes);
}

void *
mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset)
{
    static void *(*next)(void *, size_t, int, int, int, off_t);

    if (fails())
        return MAP_FAILED;
    if (next == NULL)
        find_next("mmap", &next);
    return next(at, bytes, protection, flags, file, offset);
}

int
pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *),
               void *data)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

    if (fails())
        return EAGAIN;
    if (next == NULL)
        find_next("pthread_create", &next);
    return next(thread, attributes, start, data);
}

/* Wraps the program's main: calls before and after it are not counted. */
static int
counted_main(int argc, char **argv, char **environment)
{
    const char *file = getenv("LONGHAUL_CALLS");
    const int out = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    int status;

    unsetenv("LD_PRELOAD");
    atomic_store(&counting, true);
    status = main_of_program(argc, argv, environment);
    atomic_store(&counting, false);
    if (out >= 0)
        dprintf(out, "%lu\n", atomic_load(&calls));
    return status;
}

int __libc_start_main(MainFunc program, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*ld_fini)(void), void *stack_end);

int /* NOLINTNEXTLINE(readability-function-size): the parameters are the C library's */
__libc_start_main(MainFunc program, int argc, char **argv, void (*init)(void), void (*fini)(void),
                  void (*ld_fini)(void), void *stack_end)
{
    int (*next)(MainFunc, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);
    const char *fail = getenv("LONGHAUL_FAIL");
    char *end = NULL;

    find_next("__libc_start_main", &next);
    if (fail != NULL) {
        fail_at = strtoul(fail, &end, 10);
        fail_on = *end == '+';
    }
    main_of_program = program;
    return next(counted_main, argc, argv, init, fini, ld_fini, stack_end);
}
