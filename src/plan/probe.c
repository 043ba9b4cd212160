/*
 * Small programs with and without an option, held against each other as text.
 */
#include "plan/probe.h"

#include "base/error.h"

#include <string.h>

#define RANKS 4

/* Values that differ from any default that a schedule may have on four ranks. Flags have none. */
static const struct {
    const char *name;
    const char *values[4];
} probes[] = {
    { "linear_decay", { "0.5" } },
    { "no_overlap", { NULL } },
    { "published_code", { NULL } },
    { "gradient_wire", { "fp32", "16bit" } },
    { "grid", { "1x4", "4x1", "2x2" } },
    { "hierarchical_context_parallel_sizes", { "1,4", "4,1", "2,2" } },
    { "inner_ring", { "1", "2", "4" } },
    { "gather_groups", { "1", "2", "4" } },
    { "scan_blocks", { "1", "2", "4" } },
    { "local_kv", { NULL } },
    { "gather_delta", { NULL } },
    { "state_recompute", { NULL } },
    { "unfused", { NULL } },
    { "pad_heads", { NULL } },
    { "recompute_granularity", { "selective", "full" } },
};

/* Heads that divide among the ranks, and heads that do not, of both kinds of attention. */
static const struct {
    LhAttentionKinds kind;
    const char *attention, *heads, *groups;
} bases[] = {
    { LH_ATTENTION_SOFTMAX, "softmax", "8", "4" },
    { LH_ATTENTION_SOFTMAX, "softmax", "6", "6" },
    { LH_ATTENTION_LINEAR, "linear", "8", "4" },
    { LH_ATTENTION_LINEAR, "linear", "6", "6" },
};

static const LhField *
find(const char *name)
{
    const LhField *field = lh_scenario_options;

    while (strcmp(field->name, name) != 0)
        field++;
    return field;
}

static void
set(LhScenario *s, const char *name, const char *text)
{
    g_autoptr(GError) error = NULL;

    lh_scenario_set(s, find(name), text, &error);
    g_assert_no_error(error);
}

static LhScenario *
new_scenario(guint base)
{
    LhScenario *s = lh_scenario_new();

    set(s, "attention", bases[base].attention);
    set(s, "seq_length", "256");
    set(s, "num_attention_heads", bases[base].heads);
    set(s, "num_query_groups", bases[base].groups);
    set(s, "kv_channels", "16");
    return s;
}

static bool
make_params(const LhScenario *s, LhProgramParams *params)
{
    const LhModel model = { .num_layers = 1 };
    const LhSources sources = { .model = &model };

    return lh_setup_params(s, &sources, RANKS, params, NULL);
}

/* What the schedule makes of the scenario: its program but for the parameters, which repeat the
 * options, or its refusal. NULL if the scenario itself cannot be. Caller frees. */
static char *
outcome(const LhSchedule *schedule, const LhScenario *s)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    LhProgramParams params;

    if (!make_params(s, &params))
        return NULL;
    program = lh_program_new(schedule, &params, &error);
    if (program == NULL || !lh_program_write(program, text, &error))
        return g_strdup(error->message);
    return g_strdup(strstr(text->str, "\"placement\""));
}

static bool
changes(const LhSchedule *schedule, guint base, const char *plain, guint probe)
{
    const char *const *values = probes[probe].values;

    for (guint i = 0; i < G_N_ELEMENTS(probes[probe].values); i++) {
        g_autoptr(LhScenario) s = NULL;
        g_autofree char *changed = NULL;

        if (i > 0 && values[i] == NULL)
            break;
        s = new_scenario(base);
        set(s, probes[probe].name, values[i]);
        changed = outcome(schedule, s);
        if (changed != NULL && strcmp(plain, changed) != 0)
            return true;
    }
    return false;
}

static bool
listens(const LhSchedule *schedule, unsigned kinds, guint probe)
{
    for (guint base = 0; base < G_N_ELEMENTS(bases); base++) {
        g_autoptr(LhScenario) s = NULL;
        g_autofree char *plain = NULL;

        if ((bases[base].kind & kinds) == 0 ||
            !lh_schedule_takes(schedule, bases[base].kind == LH_ATTENTION_LINEAR))
            continue;
        s = new_scenario(base);
        plain = outcome(schedule, s);
        if (changes(schedule, base, plain, probe))
            return true;
    }
    return false;
}

GPtrArray *
lh_probe_options(const LhSchedule *schedule)
{
    GPtrArray *options = g_ptr_array_new();

    for (guint i = 0; i < G_N_ELEMENTS(probes); i++) {
        if (listens(schedule, LH_ATTENTION_ALL, i))
            g_ptr_array_add(options, (gpointer)find(probes[i].name));
    }
    return options;
}

GPtrArray *
lh_probe_unread(const LhSetup *setup)
{
    const unsigned kind =
        setup->params.attention.linear ? LH_ATTENTION_LINEAR : LH_ATTENTION_SOFTMAX;
    GPtrArray *options = g_ptr_array_new();

    for (guint i = 0; i < G_N_ELEMENTS(probes); i++) {
        guint k = 0;

        if (!lh_scenario_has(setup->scenario, probes[i].name))
            continue;
        while (k < setup->schedules->len &&
               !listens(g_ptr_array_index(setup->schedules, k), kind, i))
            k++;
        if (k == setup->schedules->len)
            g_ptr_array_add(options, (gpointer)find(probes[i].name));
    }
    return options;
}

bool
lh_probe_option(const LhSchedule *schedule, unsigned kinds, const char *name)
{
    guint i = 0;

    while (strcmp(probes[i].name, name) != 0)
        i++;
    return listens(schedule, kinds, i);
}

char *
lh_probe_full_mask(const LhSchedule *schedule)
{
    g_autoptr(LhScenario) s = new_scenario(0);
    g_autoptr(LhProgram) program = NULL;
    g_autoptr(GError) error = NULL;
    LhProgramParams params;

    set(s, "mask", "full");
    g_assert(make_params(s, &params));
    program = lh_program_new(schedule, &params, &error);
    return program != NULL ? NULL
                           : g_strdup(error->message + strlen(schedule->name) + strlen(": "));
}
