/* Traces of PyTorch's profiler, and longhaul's own in Chrome's format. */
#pragma once

#include "import/seen.h"

/* As lh_seen_load, of JSON alone. */
bool lh_kineto_load(LhSeenRun *run, const char *path, GError **error);
