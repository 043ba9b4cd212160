/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole program on the stand-in libraries. STANDIN_SEED, STANDIN_QUEUES and STANDIN_EAGER set
 * their behaviour; STANDIN_DEVICES (default 16), STANDIN_MEMORY (bytes per device) and
 * STANDIN_DRIVER set the machine. With STANDIN_IDLE nothing is computed, and kernels take the time
 * their flops and bytes imply. Findings of the stand-ins are printed at the end and make the exit
 * status 9.
 */
#include "standin/standin.h"
#include "standin/standin_calls.h"

#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FOUND_STATUS 9
#define DEVICES 16

static uint32_t
number_of(const char *variable, int usual)
{
    const char *text = g_getenv(variable);

    return (uint32_t)(text == NULL ? usual : strtol(text, NULL, 10));
}

/* A plausible duration, so that rates are finite. */
static double
kernel_seconds(const char *name, const uint32_t grid[3])
{
    (void)name;
    (void)grid;
    return 1e-6;
}

/* Duration in an idle run, which distinguishes shapes. */
static double
call_seconds(LhKernelId id, const LhKernelArgs *args)
{
    const LhKernel *kernel = lh_kernels[id];

    return 1e-6 + (double)kernel->flops(args) / 400e12 +
           (double)kernel->memory_bytes(args, 2) / 2e12;
}

static void
end(void)
{
    standin_end();
    if (standin_findings()[0] == '\0')
        return;
    fprintf(stderr, "FOUND: %s", standin_findings());
    fflush(NULL);
    _exit(FOUND_STATUS);
}

__attribute__((constructor)) static void
begin(void)
{
    const StandinOptions options = { .seed = number_of("STANDIN_SEED", 0),
                                     .devices = number_of("STANDIN_DEVICES", DEVICES),
                                     .queues = number_of("STANDIN_QUEUES", 0),
                                     .eager = number_of("STANDIN_EAGER", 0),
                                     .memory_bytes = number_of("STANDIN_MEMORY", 0),
                                     .driver = (int)number_of("STANDIN_DRIVER", 0) };

    const StandinTimes times = { kernel_seconds, 1e-6, 1e11,
                                 .idle = number_of("STANDIN_IDLE", 0) != 0,
                                 .fill_bytes_per_s = number_of("STANDIN_IDLE", 0) != 0 ? 2e12 : 0 };

    standin_times(&times);
    standin_start(&options);
    if (times.idle)
        standin_call_seconds = call_seconds;
    atexit(end);
}
