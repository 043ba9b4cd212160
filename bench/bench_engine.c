/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares the engine on the two patterns of patterns.h with two other programs: the bare one
 * (bare_ring.c), and SimGrid where it is installed.
 *
 *   bench_engine [--bare PROGRAM] [--simgrid PROGRAM] [--ranks P]... [--pattern ring|bal]...
 *                [--mode sync|jit]... [--steps N] [--rounds N]
 *
 * Prints one row per case and program: makespan, CPU seconds of the run phase, events per CPU
 * second (an event is the completion of one compute op or one message), peak memory of the process
 * so far, and the ratios. longhaul and the bare program alternate, and the medians of their rounds
 * count; SimGrid runs once. The makespan is compared with its closed form in sync (1e-9), and
 * always with those of the other programs (0.1 %): the exit status is 1 if one differs more.
 */
#include "patterns.h"

#include "sim/network/topology.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define MESSAGE_BYTES (UINT64_C(64) << 20)
#define NIC_BYTES_PER_S 12.5e9
#define NVLINK_BYTES_PER_S 300e9
#define LATENCY_S 5e-6
#define GPUS_PER_NODE 8
#define CLOSED_FORM_TOLERANCE 1e-9
#define PEER_TOLERANCE 1e-3
#define ROUNDS_DEFAULT 5
#define ROUNDS_MAX 99

static const char platform[] =
    "{ \"schema\": \"longhaul.topology/1\", \"name\": \"bench\", \"description\": \"bench "
    "platform\","
    "  \"source\": \"bench\", \"device\": \"a100-sxm-80g\","
    "  \"node\": { \"gpus\": 8,"
    "    \"scale_up\": { \"kind\": \"nvswitch\", \"bandwidth\": \"300GB/s\", \"latency\": \"2us\", "
    "\"ctas\": 0,"
    "                  \"provenance\": \"assumed\", \"source\": \"bench\" },"
    "    \"nics\": { \"count\": 1, \"bandwidth\": \"12.5GB/s\", \"latency\": \"3us\", \"ctas\": 0,"
    "              \"provenance\": \"assumed\", \"source\": \"bench\" } },"
    "  \"fabric\": { \"kind\": \"ideal\" } }";

typedef struct {
    double cpu_s;
    double makespan_s;
    uint64_t events;
    long rss_bytes;
} Measurement;

static double
cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static long
peak_rss_bytes(void)
{
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss * 1024;
}

static bool
measure(LhPattern *pattern, const LhTopology *topology, Measurement *m, GError **error)
{
    g_autoptr(LhProgram) program = lh_pattern_program(pattern);
    g_autoptr(LhSimResult) result = NULL;
    g_autoptr(GArray) no_kernels = g_array_new(FALSE, FALSE, sizeof(LhKernelRate));
    LhNetwork network;
    LhDevice device = { .sm_count = 1,
                        .tile_rows = 1,
                        .memory_bandwidth = 1,
                        .memory_efficiency = 1,
                        .kernels = no_kernels };
    LhSimParams params = { .program = program,
                           .network = &network,
                           .device = &device,
                           .steps_max = pattern->steps,
                           .compute_time = lh_pattern_compute_time,
                           .compute_time_data = pattern };
    double before;

    if (!lh_network_init(&network, topology, (pattern->ranks + GPUS_PER_NODE - 1) / GPUS_PER_NODE,
                         pattern->ranks, NULL, error))
        return false;
    before = cpu_seconds();
    result = lh_simulate(&params, error);
    if (result == NULL)
        return false;
    m->cpu_s = cpu_seconds() - before;
    m->makespan_s = (double)result->makespan_ps / (double)LH_PS_PER_S;
    m->events = result->events;
    m->rss_bytes = peak_rss_bytes();
    return true;
}

/* Lockstep: a step lasts as long as its slowest message, or its compute. */
static double
closed_form_s(const LhPattern *pattern)
{
    double total = 0, alone = (double)MESSAGE_BYTES / NIC_BYTES_PER_S;
    uint32_t steps = pattern->bal ? pattern->ranks / 2 : pattern->ranks;

    for (uint32_t t = 1; t <= steps; t++) {
        double sharing = pattern->bal ? MIN(t, GPUS_PER_NODE) : 1;

        total += MAX(sharing * alone + LATENCY_S, pattern->compute_s);
    }
    return total;
}

/* Another program; NULL: absent. */
typedef struct {
    const char *name, *program;
    double time_unit_s, jitter_unit; /* units of its arguments for compute times and jitter */
} Peer;

static bool
measure_peer(const Peer *peer, const LhPattern *pattern, Measurement *m)
{
    g_autofree char *ranks = g_strdup_printf("%u", pattern->ranks);
    g_autofree char *compute = g_strdup_printf("%g", pattern->compute_s / peer->time_unit_s);
    g_autofree char *jitter = g_strdup_printf("%g", pattern->jitter / peer->jitter_unit);
    g_autofree char *bytes = g_strdup_printf("%" G_GUINT64_FORMAT, pattern->bytes);
    g_autofree char *output = NULL;
    char *argv[] = { (char *)peer->program,
                     ranks,
                     (char *)(pattern->bal ? "bal" : "ring"),
                     compute,
                     jitter,
                     bytes,
                     NULL };
    const char *fields;
    unsigned long events;
    int status;

    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &output, NULL,
                      &status, NULL) ||
        !g_spawn_check_wait_status(status, NULL))
        return false;
    fields = strstr(output, "cpu_s=");
    if (fields == NULL || sscanf(fields, "cpu_s=%lf rss_bytes=%ld events=%lu makespan_s=%lf",
                                 &m->cpu_s, &m->rss_bytes, &events, &m->makespan_s) != 4)
        return false;
    m->events = events;
    return true;
}

static double
events_per_s(const Measurement *m)
{
    return (double)m->events / MAX(m->cpu_s, 1e-9);
}

static void
print_row(const LhPattern *pattern, const char *who, const Measurement *m)
{
    printf("%-5s %-4s %6u  %-8s  %14.9f  %9.4f  %10.0f  %8.1f", pattern->bal ? "bal" : "ring",
           pattern->jitter > 0 ? "jit" : "sync", pattern->ranks, who, m->makespan_s, m->cpu_s,
           events_per_s(m) / 1000, (double)m->rss_bytes / 1048576.0);
}

static bool
print_ours(const LhPattern *pattern, const Measurement *ours)
{
    bool good = true;

    print_row(pattern, "longhaul", ours);
    if (pattern->jitter == 0 && pattern->steps == 0) {
        const double off = fabs(ours->makespan_s / closed_form_s(pattern) - 1);

        good = off <= CLOSED_FORM_TOLERANCE;
        printf("  relative error to closed form %.1e%s", off, good ? "" : " (too large)");
    }
    printf("\n");
    return good;
}

/* Prints the row without its line break. */
static bool
print_peer(const LhPattern *pattern, const char *name, const Measurement *ours,
           const Measurement *peer)
{
    const double ratio = ours->makespan_s / peer->makespan_s;
    const bool good = fabs(ratio - 1) <= PEER_TOLERANCE;

    print_row(pattern, name, peer);
    printf("  makespan ratio %.6f%s", ratio, good ? "" : " (outside tolerance)");
    return good;
}

static int
compare_doubles(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Over all rounds of one case. */
typedef struct {
    Measurement ours, bare; /* with the median CPU time */
    double ratio, ratio_min, ratio_max;
} Rounds;

/* Alternates longhaul and the bare program, so that other load slows both. */
static bool
measure_rounds(LhPattern *pattern, const LhTopology *topology, const Peer *bare, int count,
               Rounds *rounds, GError **error)
{
    double ours_s[ROUNDS_MAX], bare_s[ROUNDS_MAX], ratios[ROUNDS_MAX];

    for (int i = 0; i < count; i++) {
        if (!measure(pattern, topology, &rounds->ours, error))
            return false;
        ours_s[i] = rounds->ours.cpu_s;
        if (bare->program == NULL)
            continue;
        if (!measure_peer(bare, pattern, &rounds->bare)) {
            g_set_error(error, G_SPAWN_ERROR, G_SPAWN_ERROR_FAILED, "%s failed", bare->program);
            return false;
        }
        bare_s[i] = rounds->bare.cpu_s;
        ratios[i] = ours_s[i] / MAX(bare_s[i], 1e-9);
    }
    qsort(ours_s, (size_t)count, sizeof(double), compare_doubles);
    rounds->ours.cpu_s = ours_s[count / 2];
    if (bare->program == NULL)
        return true;
    qsort(bare_s, (size_t)count, sizeof(double), compare_doubles);
    qsort(ratios, (size_t)count, sizeof(double), compare_doubles);
    rounds->bare.cpu_s = bare_s[count / 2];
    rounds->ratio = ratios[count / 2];
    rounds->ratio_min = ratios[0];
    rounds->ratio_max = ratios[count - 1];
    return true;
}

/* Runs one case on all programs; returns whether the makespans agree. */
static bool
run_case(LhPattern *pattern, const LhTopology *topology, const Peer *bare, const Peer *simgrid,
         int count)
{
    g_autoptr(GError) error = NULL;
    Rounds rounds = { 0 };
    Measurement peer;
    bool good;

    if (!measure_rounds(pattern, topology, bare, count, &rounds, &error)) {
        printf("%s\n", error->message);
        return false;
    }
    good = print_ours(pattern, &rounds.ours);
    if (bare->program != NULL) {
        good &= print_peer(pattern, bare->name, &rounds.ours, &rounds.bare);
        printf(", CPU time ratio %.2f (%.2f to %.2f)\n", rounds.ratio, rounds.ratio_min,
               rounds.ratio_max);
    }
    if (simgrid->program == NULL)
        return good;
    if (!measure_peer(simgrid, pattern, &peer)) {
        printf("# SimGrid failed on this case\n");
        return false;
    }
    good &= print_peer(pattern, simgrid->name, &rounds.ours, &peer);
    printf(", events/s ratio %.1f\n", events_per_s(&rounds.ours) / events_per_s(&peer));
    return good;
}

/* An empty name means no program; other programs cannot limit the number of steps. */
static const char *
peer_program(const char *name, int steps)
{
    return name == NULL || name[0] == '\0' || steps > 0 ? NULL : name;
}

int
main(int argc, char **argv)
{
    g_autofree char *bare_name = NULL;
    g_autofree char *simgrid_name = NULL;
    g_auto(GStrv) ranks = NULL;
    g_auto(GStrv) patterns = NULL;
    g_auto(GStrv) modes = NULL;
    int steps = 0, rounds = ROUNDS_DEFAULT;
    const GOptionEntry entries[] = {
        { "bare", 0, 0, G_OPTION_ARG_FILENAME, &bare_name, "The bare program; empty: skip it",
          "PROGRAM" },
        { "simgrid", 0, 0, G_OPTION_ARG_FILENAME, &simgrid_name,
          "The SimGrid program; empty: skip it", "PROGRAM" },
        { "ranks", 0, 0, G_OPTION_ARG_STRING_ARRAY, &ranks, "Ranks (repeatable)", "P" },
        { "pattern", 0, 0, G_OPTION_ARG_STRING_ARRAY, &patterns, "ring or bal (repeatable)",
          "NAME" },
        { "mode", 0, 0, G_OPTION_ARG_STRING_ARRAY, &modes, "sync or jit (repeatable)", "NAME" },
        { "steps", 0, 0, G_OPTION_ARG_INT, &steps, "Only the first steps", "N" },
        { "rounds", 0, 0, G_OPTION_ARG_INT, &rounds, "Rounds of longhaul and the bare program (5)",
          "N" },
        G_OPTION_ENTRY_NULL,
    };
    const char *const default_ranks[] = { "64", "256", "1024", NULL };
    const char *const default_patterns[] = { "ring", "bal", NULL };
    const char *const default_modes[] = { "sync", "jit", NULL };
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_autoptr(GError) error = NULL;
    g_autoptr(LhTopology) topology = NULL;
    Peer bare = { "bare", NULL, 1e-6, 0.01 }, simgrid = { "simgrid", NULL, 1, 1 };
    const char *const *p, *const *k, *const *r;
    bool good = true;

    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) ||
        (topology = lh_topology_parse("bench platform", platform, strlen(platform), &error)) ==
            NULL) {
        fprintf(stderr, "bench_engine: %s\n", error->message);
        return 2;
    }
    rounds = CLAMP(rounds, 1, ROUNDS_MAX);
    bare.program = peer_program(bare_name, steps);
    simgrid.program = peer_program(simgrid_name, steps);
    if (simgrid.program == NULL && steps == 0)
        printf("# SimGrid is not installed (libsimgrid-dev): skipped\n");
    printf("# pattern mode   ranks  program      makespan s      CPU s  k events/s  peak MiB\n");
    for (p = patterns ? (const char *const *)patterns : default_patterns; *p != NULL; p++)
        for (k = modes ? (const char *const *)modes : default_modes; *k != NULL; k++)
            for (r = ranks ? (const char *const *)ranks : default_ranks; *r != NULL; r++) {
                bool bal = strcmp(*p, "bal") == 0, jit = strcmp(*k, "jit") == 0;
                LhPattern pattern = { .bal = bal,
                                      .ranks = (uint32_t)strtoul(*r, NULL, 10),
                                      .steps = (uint32_t)steps,
                                      .compute_s = !jit  ? 1e-3
                                                   : bal ? 60e-3
                                                         : 10e-3,
                                      .jitter = jit ? 0.3 : 0,
                                      .bytes = MESSAGE_BYTES };

                good &= run_case(&pattern, topology, &bare, &simgrid, rounds);
                fflush(stdout);
            }
    return good ? 0 : 1;
}
