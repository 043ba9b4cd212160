/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul synth: searches for a schedule that is faster than the published ones.
 */
#include "base/error.h"
#include "base/escape.h"
#include "base/files/output.h"
#include "cli/command.h"
#include "cli/synth_live.h"
#include "compare/totals.h"
#include "program/explicit/explicit_read.h"
#include "program/explicit/explicit_write.h"
#include "proof/proof_cases.h"
#include "proof/proven.h"
#include "report/draw/synth_figure.h"
#include "report/text/describe.h"

#include <stddef.h>

typedef struct {
    char *output, *from, *figure;
    uint64_t budget, seed, memory_limit_bytes, jobs;
    bool robust;
} SynthOptions;

static const LhField synth_options[] = {
    { .name = "output",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(SynthOptions, output),
      .flags = LH_FIELD_WRITTEN,
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "File for the fastest program, as JSON (longhaul.schedule/1)." },
    { .name = "budget",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_UINT,
      .offset = offsetof(SynthOptions, budget),
      .min = 1,
      .max = LH_SYNTH_BUDGET_MAX,
      .placeholder = "CANDIDATES",
      .description = "Number of candidates to search; default " G_STRINGIFY(LH_SYNTH_BUDGET) "." },
    { .name = "memory_limit",
      .category = LH_ABOUT_MEMORY,
      .type = LH_FIELD_UNIT,
      .unit = LH_UNIT_BYTES,
      .offset = offsetof(SynthOptions, memory_limit_bytes),
      .min = 1,
      .max = -1,
      .placeholder = "BYTES",
      .description =
          "Memory limit of a rank, inputs and outputs included; default: what fits on its GPU." },
    { .name = "seed",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_UINT,
      .offset = offsetof(SynthOptions, seed),
      .description = "Seed of the search; default 0. The same seed and budget give the same "
                     "program." },
    { .name = "from",
      .category = LH_ABOUT_INPUT,
      .type = LH_FIELD_STRING,
      .offset = offsetof(SynthOptions, from),
      .min = 1,
      .max = -1,
      .placeholder = "FILE",
      .names = "files",
      .description = "Program of an earlier search for the same scenario, to start from. The "
                     "result is never slower, unless --robust prefers a slower one." },
    LH_OPTION_FIGURE(SynthOptions, figure,
                     "Draw which node computes which block of attention, and when its inputs "
                     "travel, to this .svg, .png or .pdf file."),
    { .name = "robust",
      .category = LH_ABOUT_SEARCH,
      .type = LH_FIELD_BOOL,
      .offset = offsetof(SynthOptions, robust),
      .description = "Judge the fastest programs again, with 10 % jitter and under the other "
                     "network model. Writes one that wins every time, if there is one." },
    LH_OPTION_JOBS(SynthOptions, jobs, "Candidates to work on"),
    { .name = NULL },
};

/* --- output -------------------------------------------------------------------------------------
 */

static void
add_time(LhTable *table, const char *what, LhTime time_ps, LhTime bound_ps)
{
    g_autofree char *time = lh_format_time(time_ps);

    lh_table_row(table);
    lh_table_cell(table, what, NULL);
    lh_table_cell(table, time, NULL);
    if (bound_ps > 0)
        lh_table_cell_printf(table, "%.2f", (double)time_ps / (double)bound_ps);
    else
        lh_table_cell(table, "-", NULL);
}

static void
add_bound_row(LhTable *table, const char *what, const LhCompareRow *row, const LhSynthBound *bound)
{
    LhTotals totals;
    g_autofree char *peak = NULL;

    lh_totals(row->result, &totals);
    add_time(table, what, row->result->makespan_ps, bound->bound_ps);
    for (int tier = 0; tier < LH_TIERS; tier++) {
        g_autofree char *bytes = lh_format_bytes((uint64_t)totals.tier_bytes[tier]);

        lh_table_cell(table, bytes, NULL);
    }
    peak = lh_format_bytes(totals.peak_bytes);
    lh_table_cell(table, peak, NULL);
}

static LhTable *
table_of(const LhSetup *setup, const LhSynthesis *s)
{
    LhTable *table = lh_table_new();

    lh_table_column(table, "what", "", NULL, false);
    lh_table_column(table, "time", "time", NULL, true);
    lh_table_column(table, "of_bound", "of bound", NULL, true);
    for (int tier = 0; tier < LH_TIERS; tier++)
        lh_table_column(table, lh_tier_names[tier],
                        lh_topology_link_name(setup->topology, (LhTier)tier), "sent", true);
    lh_table_column(table, "peak", "peak", "of a rank", true);
    add_time(table, "bound: compute", s->bound.compute_ps, s->bound.bound_ps);
    if (s->bound.cut_ps > 0)
        add_time(table, "bound: bytes into nodes", s->bound.cut_ps, s->bound.bound_ps);
    if (s->bound.trunk_ps > 0)
        add_time(table, "bound: bytes over trunks", s->bound.trunk_ps, s->bound.bound_ps);
    if (s->published != NULL) {
        g_autofree char *what = g_strdup_printf("published: %s", s->published->name);

        add_bound_row(table, what, s->published, &s->bound);
    }
    if (s->origin == LH_SYNTH_FOUND)
        add_bound_row(table, "found", s->best, &s->bound);
    else if (s->candidate_ps != LH_TIME_NEVER)
        add_time(table, "best candidate", s->candidate_ps, s->bound.bound_ps);
    if (s->origin == LH_SYNTH_FROM)
        add_bound_row(table, "from the file", s->best, &s->bound);
    return table;
}

/* Number of published schedules tried; fewer than all if interrupted. */
static guint
published_tried(const LhSynthesis *s)
{
    guint tried = 0;

    for (guint i = 0; i < s->rows->len; i++)
        tried += g_ptr_array_index(s->rows, i) != NULL;
    return tried;
}

static void
print_tried(const LhSynthesis *s, GString *out)
{
    g_autofree char *moves = lh_format_count(s->moves);

    g_string_append_printf(out,
                           "Tried: published schedules %u, splits of the attention %u, candidates "
                           "%u, moves %s, programs simulated %u",
                           published_tried(s), s->grains, s->candidates, moves, s->simulated);
    if (s->too_large > 0)
        g_string_append_printf(out, ", too large for memory %u", s->too_large);
    g_string_append(out, ".\n");
}

static void
print_recipe(const LhSynthesis *s, GString *out)
{
    const LhSynthRecipe *r = &s->recipe;

    if (s->candidate_ps == LH_TIME_NEVER)
        return;
    g_string_append_printf(
        out,
        "%s: homes %s, slices of a GPU's heads %u, chunks of a home %u, rounds %u, %s in %u "
        "streams%s; started from %s.\n",
        s->origin == LH_SYNTH_FOUND && s->robust.chosen > 0 ? "Chosen candidate" : "Best candidate",
        r->grain.zigzag ? "zigzag" : "contiguous", r->grain.slices,
        r->grain.fine * (r->grain.zigzag ? 2 : 1), r->rounds,
        r->style.kernels == LH_SYNTH_BLOCKS ? "attention_block" : "attention_fwd", r->style.streams,
        r->style.early ? ", early" : "",
        r->start == LH_SYNTH_STARTS ? "the best so far" : lh_synth_start_names[r->start]);
}

static void
print_answer(const LhSynthesis *s, const char *path, GString *out)
{
    g_autofree char *file = lh_escaped_line(path);
    const double best = (double)s->best->result->makespan_ps;
    const char *const what[] = { [LH_SYNTH_PUBLISHED] = s->best->name,
                                 [LH_SYNTH_FROM] = "the program of --from",
                                 [LH_SYNTH_FOUND] = s->robust.chosen > 0 ? "the chosen candidate"
                                                                         : "the best candidate" };

    const bool all = published_tried(s) == s->rows->len;

    if (s->published == NULL)
        g_string_append_printf(out, "No published schedule%s runs and fits here.",
                               all ? "" : " that was tried");
    else if (lh_synthesis_wins(s))
        g_string_append_printf(out, "It takes %.1f %% less time than %s, the best published one%s.",
                               100 * (1 - best / (double)s->published->result->makespan_ps),
                               s->published->name, all ? "" : " that was tried");
    else
        g_string_append_printf(out, "None of the candidates%s is faster than %s.",
                               s->interrupted ? " that were tried" : "", s->published->name);
    g_string_append_printf(out, "\nProven and written to %s: %s.\n", file, what[s->origin]);
}

/* --- robustness ---------------------------------------------------------------------------------
 */

static void
add_median_and_worst(LhTable *table, LhTime median_ps, LhTime worst_ps)
{
    const LhTime times_ps[] = { median_ps, worst_ps };

    for (gsize i = 0; i < G_N_ELEMENTS(times_ps); i++) {
        g_autofree char *time =
            times_ps[i] == LH_TIME_NEVER ? g_strdup("-") : lh_format_time(times_ps[i]);

        lh_table_cell(table, time, NULL);
    }
}

/* "fifo, jitter 10 %"; caller frees. */
static char *
judge_name(const LhSynthTrial *trial)
{
    const char *network = lh_network_model_names[trial->network_model];

    return trial->jitter > 0 ? g_strdup_printf("%s, jitter %.3g %%", network, 100 * trial->jitter)
                             : g_strdup(network);
}

static void
print_trials(const LhSynthRobust *r, GString *out)
{
    g_autoptr(LhTable) table = lh_table_new();

    lh_table_column(table, "judge", "judge", NULL, false);
    lh_table_column(table, "published", "best published", NULL, false);
    lh_table_column(table, "published_median", "time", "median", true);
    lh_table_column(table, "published_worst", "time", "worst", true);
    lh_table_column(table, "median", "written", "median", true);
    lh_table_column(table, "worst", "written", "worst", true);
    lh_table_column(table, "wins", "wins", NULL, true);
    for (int j = 0; j < LH_SYNTH_JUDGES; j++) {
        const LhSynthTrial *trial = &r->trials[j];
        g_autofree char *name = judge_name(trial);

        lh_table_row(table);
        lh_table_cell(table, name, NULL);
        lh_table_cell(table, trial->published != NULL ? trial->published : "none", NULL);
        add_median_and_worst(table, trial->published_median_ps, trial->published_worst_ps);
        add_median_and_worst(table, trial->median_ps, trial->worst_ps);
        lh_table_cell_printf(table, "%u of %u", trial->wins, trial->runs);
    }
    lh_table_print(table, LH_FORMAT_TABLE, out);
}

/* Prints "It does not win under fifo: usp takes 1 ms, it takes 2 ms." */
static void
print_loss(const LhSynthTrial *trial, GString *out)
{
    g_autofree char *name = judge_name(trial);
    g_autofree char *published = NULL;
    g_autofree char *time = NULL;

    g_string_append_printf(out, "It does not win under %s: ", name);
    if (trial->published != NULL) {
        published = lh_format_time(trial->published_median_ps);
        g_string_append_printf(out, "%s takes %s, ", trial->published, published);
    }
    if (trial->median_ps == LH_TIME_NEVER) {
        g_string_append(out, "it does not finish, or does not fit");
    } else {
        time = lh_format_time(trial->median_ps);
        g_string_append_printf(out, "it takes %s", time);
    }
    if (trial->runs > 1)
        g_string_append_printf(out, " (medians), and it wins with %u of %u seeds", trial->wins,
                               trial->runs);
    g_string_append(out, ".\n");
}

static void
print_judgement(const LhSynthRobust *r, GString *out)
{
    g_autofree char *fastest = lh_format_time(r->fastest_ps);

    if (r->holds)
        g_string_append(out, "It wins under every judge.\n");
    for (int j = 0; j < LH_SYNTH_JUDGES; j++)
        if (r->trials[j].wins < r->trials[j].runs)
            print_loss(&r->trials[j], out);
    if (!r->holds && r->contenders > 1)
        g_string_append_printf(out,
                               "None of the %u fastest programs wins under every judge: the "
                               "fastest of the scenario is written.\n",
                               r->contenders);
    else if (r->chosen > 0)
        g_string_append_printf(
            out, "The fastest program of the scenario takes %s there, and %s.\n", fastest,
            r->fastest_holds ? "wins under every judge as well, but by less in its worst case"
                             : "does not win under every judge");
}

static void
print_robust(const LhSynthesis *s, GString *out)
{
    const LhSynthRobust *r = &s->robust;

    g_string_append_c(out, '\n');
    if (r->asked) {
        print_trials(r, out);
        g_string_append_c(out, '\n');
        print_judgement(r, out);
        return;
    }
    g_string_append_printf(out, "No other judge was run: %s.\n",
                           s->interrupted         ? "the search was interrupted"
                           : s->published == NULL ? "there is no published schedule to compare with"
                                                  : "no program is faster in the scenario itself");
}

static void
print_synth(const LhSetup *setup, const LhSynthesis *s, const SynthOptions *o, GString *out)
{
    g_autoptr(LhTable) table = table_of(setup, s);

    lh_describe_case(setup, out);
    g_string_append_c(out, '\n');
    lh_table_print(table, LH_FORMAT_TABLE, out);
    g_string_append_c(out, '\n');
    print_tried(s, out);
    print_recipe(s, out);
    print_answer(s, o->output, out);
    if (o->robust)
        print_robust(s, out);
    if (s->interrupted)
        g_string_append(out, "\nInterrupted: this is the result so far; programs that were not "
                             "tried may be faster.\n");
    if (o->figure != NULL && s->cells == NULL)
        g_string_append(out, "\nNo figure: there is no candidate to draw.\n");
}

/* --- the command --------------------------------------------------------------------------------
 */

/* Loads the program of --from, which must be proven. */
static bool
load_from(const LhSetup *setup, const char *path, LhProgram **program, GError **error)
{
    g_autoptr(LhProgram) loaded = NULL;
    g_autoptr(LhProven) proven = NULL;

    if (path == NULL)
        return true;
    loaded = lh_program_load(path, error);
    if (loaded == NULL || !lh_synth_fits(setup, loaded, error)) {
        g_prefix_error(error, "--from: ");
        return false;
    }
    proven = lh_prove_program(loaded->name, loaded);
    if (proven->unproven->len > 0) {
        g_autofree char *name = lh_escaped_line(path);

        g_set_error(error, LH_ERROR, LH_ERROR_NO, "--from: the program %s is not proven: %s", name,
                    g_array_index(proven->findings, LhProofFinding, 0).message);
        return false;
    }
    *program = g_steal_pointer(&loaded);
    return true;
}

static bool
check_synth(const LhCommandLine *line, GError **error)
{
    const SynthOptions *o = line->options;

    if (o->output == NULL || g_str_equal(o->output, "-")) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "longhaul synth needs --output FILE, the file to write the program to");
        return false;
    }
    if (line->scenario->schedule_file != NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                    "longhaul synth searches for a program; to start from one, give it with --from "
                    "FILE, and the scenario it is for");
        return false;
    }
    return true;
}

static LhAnswer
run_synth(const LhCommandLine *line, GError **error)
{
    const SynthOptions *o = line->options;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(LhProgram) from = NULL;
    g_autoptr(LhSynthesis) synthesis = NULL;
    g_autoptr(GString) file = g_string_new(NULL);
    g_autoptr(GString) out = g_string_new(NULL);

    if (!check_synth(line, error))
        return LH_ANSWER_FAILED;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_synth_check(setup, error) || !load_from(setup, o->from, &from, error))
        return LH_ANSWER_FAILED;
    synthesis = lh_synth_live(setup,
                              (LhSynthOptions){ .budget = (uint32_t)o->budget,
                                                .seed = o->seed,
                                                .memory_limit_bytes = o->memory_limit_bytes,
                                                .task.jobs = (guint)o->jobs,
                                                .robust = o->robust,
                                                .from = from },
                              error);
    if (synthesis == NULL || !lh_program_write(synthesis->best->program, file, error) ||
        !lh_output_file(o->output, file->str, file->len, error))
        return LH_ANSWER_FAILED;
    print_synth(setup, synthesis, o, out);
    if (!lh_output_stdout(out->str, out->len, error) ||
        (o->figure != NULL && synthesis->cells != NULL &&
         !lh_synth_figure_draw(setup, synthesis, o->figure, error)))
        return LH_ANSWER_FAILED;
    if (synthesis->interrupted)
        return LH_ANSWER_PARTIAL;
    return lh_synthesis_wins(synthesis) ? LH_ANSWER_YES : LH_ANSWER_NO;
}

const LhCommand lh_command_synth = {
    .name = "synth",
    .arguments = "[SCENARIO] [OPTIONS] --output FILE",
    .summary = "Search for a schedule that is faster than the published ones.",
    .details = "Simulates the schedules that compare knows, then searches for programs that\n"
               "assign the blocks of attention to nodes (or to the GPUs of one node) and the\n"
               "messages to rounds, each simulated in full. The fastest program is proven and\n"
               "written; it can be run, simulated and verified like any other. Exit status 1 if\n"
               "it is a published one. Softmax attention, the forward pass (--pass fwd) or both.\n"
               "docs/manual/synthesis.md lists the limits of the search.\n\n"
               "With --robust the fastest programs, of up to 16 candidates, are judged again:\n"
               "with 10 % jitter (or the scenario's, if that is larger) of 8 seeds, under the\n"
               "other model of the network (fifo; fair where the scenario has fifo), and with\n"
               "both. Among programs that win under every judge, the one with the largest\n"
               "smallest lead is written. If there is none, the fastest of the scenario is\n"
               "written, and the judges under which it does not win are listed. The exit status\n"
               "depends on the scenario alone.\n\n"
               "Ctrl-C or SIGTERM ends the search with the result so far (exit status 130).\n\n"
               "  longhaul synth --cluster dfa-2node:2 --seq-length 16K --pass fwd \\\n"
               "      --output best.schedule.json\n"
               "  longhaul sim --schedule-file best.schedule.json --cluster dfa-2node:2\n",
    .scenario = true,
    .ignores = LH_SCENARIO_OF_PROOF,
    .common = { "--model", "--cluster", "--seq-length", "--ranks", "--pass", "--budget", "--seed",
                "--from", "--figure", "--output" },
    .options = synth_options,
    .options_size = sizeof(SynthOptions),
    .run = run_synth,
};
