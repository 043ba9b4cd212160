/* SPDX-License-Identifier: Apache-2.0 */
/* Options of schedules by name, for tests: most options are private to one schedule. */
#pragma once

#include "sched/schedule.h"

#include <string.h>

static inline const LhOption *
option_named(const char *name)
{
    const LhOption *const *options = lh_schedule_options();

    for (; *options != NULL; options++) {
        if (strcmp((*options)->name, name) == 0)
            return *options;
    }
    g_error("no option is called %s", name);
}

static inline void
set_pair(LhProgramParams *p, const char *name, uint32_t first, uint32_t second)
{
    lh_option_set(p, option_named(name), (LhOptionValue){ first, second });
}

/* Sets a flag, a count, or a choice by its index. */
static inline void
set_option(LhProgramParams *p, const char *name, uint32_t value)
{
    set_pair(p, name, value, 0);
}

static inline uint32_t
option_of(const LhProgramParams *p, const char *name)
{
    return lh_option_first(p, option_named(name));
}
