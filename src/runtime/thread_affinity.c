/* SPDX-License-Identifier: Apache-2.0 */
/* Pins threads to cores with sched_setaffinity(2) of Linux; elsewhere threads are not pinned. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* cpu_set_t */
#endif
#include "runtime/thread_affinity.h"

#include <glib.h>

#ifdef __linux__
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLICE_NS 100000 /* shortest slice that Linux accepts */

/* struct sched_attr of sched_setattr(2): glibc declares it since 2.41, and Linux's own header
 * clashes with <sched.h>. */
typedef struct {
    uint32_t size, policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
} Attributes;

/* The affinity of the process at the first call: children of a pinned thread inherit only one
 * core. */
static const cpu_set_t *
cores_of_process(void)
{
    static cpu_set_t cores;
    static gsize ready = 0;

    if (g_once_init_enter(&ready)) {
        CPU_ZERO(&cores);
        if (sched_getaffinity(0, sizeof(cores), &cores) != 0 || CPU_COUNT(&cores) == 0)
            CPU_SET(0U, &cores);
        g_once_init_leave(&ready, 1);
    }
    return &cores;
}

uint32_t
lh_cores_count(void)
{
    return (uint32_t)CPU_COUNT(cores_of_process());
}

char *
lh_cores_text(void)
{
    const cpu_set_t *cores = cores_of_process();
    g_autofree char *boot = NULL;
    GString *text = g_string_new(NULL);

    if (g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
        g_string_append(text, g_strchomp(boot));
    else
        g_string_append(text, g_get_host_name());
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, cores))
            g_string_append_printf(text, " %u", core);
    }
    return g_string_free(text, FALSE);
}

bool
lh_pin_thread(uint32_t index)
{
    const cpu_set_t *cores = cores_of_process();
    uint32_t left = index % lh_cores_count();
    cpu_set_t one;

    CPU_ZERO(&one);
    for (unsigned core = 0; core < CPU_SETSIZE; core++) {
        if (!CPU_ISSET(core, cores) || left-- > 0)
            continue;
        CPU_SET(core, &one);
        break;
    }
    return sched_setaffinity(0, sizeof(one), &one) == 0;
}

uint64_t
lh_wake_promptly(void)
{
    Attributes attributes = { .size = sizeof(attributes) };
    uint64_t before_ns;

    /* A different policy was chosen by the user and stays. */
    if (syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0 ||
        attributes.policy != SCHED_OTHER)
        return 0;
    before_ns = attributes.runtime;
    attributes.runtime = SLICE_NS;
    return syscall(SYS_sched_setattr, 0, &attributes, 0) == 0 ? before_ns : 0;
}

void
lh_wake_as_before(uint64_t slice_ns)
{
    Attributes attributes = { .size = sizeof(attributes) };

    if (slice_ns == 0 || syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0) != 0)
        return;
    attributes.runtime = slice_ns;
    (void)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

#else

uint32_t
lh_cores_count(void)
{
    return MAX(g_get_num_processors(), 1);
}

char *
lh_cores_text(void)
{
    return g_strdup(g_get_host_name());
}

bool
lh_pin_thread(uint32_t index)
{
    (void)index;
    return false;
}

uint64_t
lh_wake_promptly(void)
{
    return 0;
}

void
lh_wake_as_before(uint64_t slice_ns)
{
    (void)slice_ns;
}

#endif
