/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json/option_category.h"

#include <stddef.h>

const LhOptionSection lh_option_sections[LH_OPTION_CATEGORIES] = {
    [LH_ABOUT_NOTHING] = { NULL, NULL },
    [LH_ABOUT_INPUT] = { "input", "Input" },
    [LH_ABOUT_MODEL] = { "model", "Model" },
    [LH_ABOUT_ATTENTION] = { "attention", "Sequence and attention" },
    [LH_ABOUT_CLUSTER] = { "cluster", "Cluster" },
    [LH_ABOUT_SCHEDULE] = { "schedule", "Schedule" },
    [LH_ABOUT_SCHEDULE_RANKS] = { "schedule-ranks", "Options of some schedules: ranks and heads" },
    [LH_ABOUT_SCHEDULE_WORK] = { "schedule-work",
                                 "Options of some schedules: communication, memory, compute" },
    [LH_ABOUT_PARALLELISM] = { "parallelism", "Parallelism" },
    [LH_ABOUT_STEP] = { "step", "Training step" },
    [LH_ABOUT_MEMORY] = { "memory", "Memory" },
    [LH_ABOUT_OFFLOAD] = { "offload", "Offload to host memory" },
    [LH_ABOUT_TRAINED] = { "trained", "Optimizer and trained weights" },
    [LH_ABOUT_MUON] = { "muon", "Muon" },
    [LH_ABOUT_SIMULATION] = { "simulation", "Simulation" },
    [LH_ABOUT_SEARCH] = { "search", "Search" },
    [LH_ABOUT_PRICE] = { "price", "Time, price and energy" },
    [LH_ABOUT_MEASUREMENT] = { "measurement", "Measurements and checks" },
    [LH_ABOUT_RUNNING] = { "running", "Running" },
    [LH_ABOUT_OUTPUT] = { "output", "Output" },
    [LH_ABOUT_FILES] = { "files", "Figures, traces and other files" },
};
