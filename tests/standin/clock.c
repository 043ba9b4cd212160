/*
 * Virtual time: an op begins when what it waits for has ended, and takes as long as the test says.
 * Ops that run at once do not slow each other down, and hosts take no time, as in the simulator
 * with unit costs and an alpha-beta network.
 */
#include "standin_private.h"

static StandinTimes times;

void
standin_times(const StandinTimes *wanted)
{
    times = *wanted;
}

bool
standin_clock_runs(void)
{
    return times.kernel != NULL;
}

double
standin_kernel_s(const char *name, const uint32_t grid[3])
{
    return times.kernel == NULL ? 0 : times.kernel(name, grid);
}

double
standin_message_s(uint64_t bytes)
{
    if (times.kernel == NULL || times.message_bytes_per_s <= 0)
        return 0;
    return times.message_s + (double)bytes / times.message_bytes_per_s;
}
