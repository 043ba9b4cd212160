/* SPDX-License-Identifier: Apache-2.0 */
/*
 * longhaul show: prints a schedule's page or its program.
 */
#include "base/error.h"
#include "cli/command.h"
#include "program/explicit/explicit_write.h"
#include "report/base/text.h"
#include "report/data/describe_options.h"
#include "report/draw/schedule_figure.h"
#include "report/text/describe.h"
#include "report/text/describe_model.h"
#include "report/text/describe_step.h"
#include "scenario/setting.h"
#include "scenario/setup_model.h"
#include "scenario/setup_params.h"
#include "scenario/step/setup_step.h"

#include <stddef.h>

#define MATRIX_RANKS_MAX 64u
#define SHOW_RANKS_DEFAULT 8   /* on a page */
#define INDENT "             " /* continuation lines of a fact on the page */

/* Formats: the schedule's page; the page without the closed forms of a case (about); or its program
 * in one of lh_format_names. */
static const char *const show_formats[] = { "page", "about", "table", "json", "csv", "md", NULL };

enum {
    FORMAT_PAGE,
    FORMAT_ABOUT,
    FORMAT_TABLE, /* from here on as in LhFormat */
};

typedef struct {
    LhOutputOptions to;
    char *figure;
} ShowOptions;

static const LhField show_options[] = {
    { .name = "format",
      .category = LH_ABOUT_OUTPUT,
      .type = LH_FIELD_CHOICE,
      .offset = offsetof(ShowOptions, to.format),
      .choices = show_formats,
      .description = "Output format. page (default): the schedule's description and its closed "
                     "forms for this case; about: the description alone; json: the program; table, "
                     "csv, md: the steps of each rank, or all ops of rank 0 in a training step." },
    LH_OPTION_OUTPUT(ShowOptions, to),
    LH_OPTION_FIGURE(ShowOptions, figure,
                     "Also draw into this .svg, .png or .pdf file which rank computes which block "
                     "of forward attention and holds which tokens, for one data-parallel group of "
                     "at most 64 ranks; of "
                     "a training step, which GPUs form the groups of each kind of parallelism."),
    { .name = NULL },
};

/* --- matrix of steps and ranks ------------------------------------------------------------------
 */

typedef struct {
    uint8_t phase;
    uint32_t step;
} StepKey;

/* Cells of one rank: StepKey -> GString. Keys are sorted when the table is made. */
typedef struct {
    GArray *keys;     /* of StepKey, over all ranks, sorted and unique */
    GPtrArray *cells; /* of GHashTable *: one per rank, key as pointer -> GString * */
} Matrix;

static gpointer
pack_key(StepKey key)
{
    return (gpointer)(((guintptr)key.phase << 32) | key.step);
}

static void
string_free(gpointer text)
{
    g_string_free(text, TRUE);
}

static GString *
cell_of(Matrix *m, uint32_t rank, StepKey key)
{
    GHashTable *cells = g_ptr_array_index(m->cells, rank);
    GString *cell = g_hash_table_lookup(cells, pack_key(key));

    if (cell != NULL)
        return cell;
    cell = g_string_new(NULL);
    g_hash_table_insert(cells, pack_key(key), cell);
    for (guint i = 0; i < m->keys->len; i++) {
        const StepKey *known = &g_array_index(m->keys, StepKey, i);

        if (known->phase == key.phase && known->step == key.step)
            return cell;
    }
    g_array_append_val(m->keys, key);
    return cell;
}

static void
append_word(GString *cell, const char *word)
{
    if (cell->len > 0)
        g_string_append_c(cell, ' ');
    g_string_append(cell, word);
}

static void
add_parts(GString *cell, const LhOp *op, const LhOpBuffer *buffer)
{
    for (uint32_t i = 0; i < op->exchange.parts_count; i++) {
        const LhPart *part = &buffer->parts[op->exchange.parts_first + i];
        g_autofree char *word = g_strdup_printf("%c%u", part->send ? '>' : '<', part->peer);

        append_word(cell, word);
    }
}

static void
add_op(Matrix *m, uint32_t rank, const LhOp *op, const LhOpBuffer *buffer)
{
    const StepKey key = { op->phase, op->step };

    if (op->kind == LH_OP_EXCHANGE) {
        add_parts(cell_of(m, rank, key), op, buffer);
    } else if (op->kind == LH_OP_COLLECTIVE) {
        append_word(cell_of(m, rank, key), lh_collective_names[op->collective.kind]);
    } else if (op->kind == LH_OP_SYNC) {
        append_word(cell_of(m, rank, key), "wait");
    } else if (op->kind == LH_OP_COMPUTE) {
        const LhEffect effect = lh_kernels[op->compute.kernel]->effect;
        const bool full = op->compute.args.mask == LH_MASK_FULL;

        if (effect == LH_EFFECT_ATTEND)
            append_word(cell_of(m, rank, key), full ? "F" : "f");
        else if (effect == LH_EFFECT_ATTEND_GRAD)
            append_word(cell_of(m, rank, key), full ? "B" : "b");
        else if (effect == LH_EFFECT_ADD)
            append_word(cell_of(m, rank, key), "+");
        else if (effect == LH_EFFECT_SCORES || effect == LH_EFFECT_SCORES_APPLY)
            append_word(cell_of(m, rank, key), "*");
    }
}

static int
by_key(gconstpointer a, gconstpointer b)
{
    const StepKey *x = a;
    const StepKey *y = b;

    if (x->phase != y->phase)
        return x->phase < y->phase ? -1 : 1;
    return x->step < y->step ? -1 : x->step > y->step;
}

static void
read_program(Matrix *m, const LhProgram *program)
{
    LhOpBuffer buffer = { 0 };

    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        LhCursor cursor;

        g_ptr_array_add(m->cells, g_hash_table_new_full(NULL, NULL, NULL, string_free));
        lh_cursor_init(&cursor, program, rank);
        while (lh_cursor_step(&cursor, &buffer)) {
            for (uint32_t i = 0; i < buffer.ops_count; i++)
                add_op(m, rank, &buffer.ops[i], &buffer);
        }
    }
    lh_op_buffer_clear(&buffer);
    g_array_sort(m->keys, by_key);
}

static LhTable *
make_matrix(const LhProgram *program)
{
    LhTable *table = lh_table_new();
    g_autoptr(GArray) keys = g_array_new(FALSE, FALSE, sizeof(StepKey));
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func((GDestroyNotify)g_hash_table_unref);
    Matrix m = { keys, cells };

    read_program(&m, program);
    lh_table_column(table, "step", "step", NULL, false);
    for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
        g_autofree char *title = g_strdup_printf("rank %u", rank);

        lh_table_column(table, title, title, NULL, false);
    }
    for (guint i = 0; i < keys->len; i++) {
        const StepKey *key = &g_array_index(keys, StepKey, i);

        lh_table_row(table);
        lh_table_cell_printf(table, "%s %u", lh_phase_names[key->phase], key->step);
        for (uint32_t rank = 0; rank < lh_program_ranks(program); rank++) {
            const GString *cell =
                g_hash_table_lookup(g_ptr_array_index(cells, rank), pack_key(*key));

            lh_table_cell(table, cell != NULL ? cell->str : ".", NULL);
        }
    }
    return table;
}

static bool
print_matrix(const LhProgram *program, LhFormat format, GString *out, GError **error)
{
    g_autoptr(LhTable) table = NULL;

    if (program->step != NULL) {
        table = lh_step_ops_table(program, 0);
        lh_table_print(table, format, out);
        return true;
    }
    if (lh_program_ranks(program) > MATRIX_RANKS_MAX) {
        g_set_error(error, LH_ERROR, LH_ERROR_NO,
                    "show: a table of %u ranks is too wide; at most %u", lh_program_ranks(program),
                    MATRIX_RANKS_MAX);
        return false;
    }
    table = make_matrix(program);
    lh_table_print(table, format, out);
    if (format == LH_FORMAT_TABLE)
        g_string_append(
            out, "\nF and B: forward and backward of a full block; f and b: of a masked block; *: "
                 "product with scores; +: merge or add;\n>r: send to rank r; <r: receive from "
                 "rank r\n");
    return true;
}

/* --- the page -----------------------------------------------------------------------------------
 */

static const char *const placement_words[] = {
    [LH_PLACE_CONTIGUOUS] = "contiguous: rank r holds the tokens from r N/P on",
    [LH_PLACE_ZIGZAG] = "zigzag: rank r holds the half-chunks r and 2P-1-r",
    [LH_PLACE_STRIPED] = "striped: rank r holds the tokens r, r+P, r+2P, ...",
    [LH_PLACE_HEADS] = "heads: every rank holds all tokens of its share of the heads",
};

/* Describes the masks that the schedule supports, and below them the others with the reason. Caller
 * frees. */
static char *
describe_masks(const LhSchedule *schedule)
{
    const bool window = (schedule->masks & LH_MASKS_WINDOW) != 0;
    const bool documents = (schedule->masks & LH_MASKS_DOCUMENTS) != 0;
    const bool softmax = lh_schedule_takes(schedule, false);
    const char *not_full = schedule->full_reason;
    GString *text = g_string_new("causal");

    if (!softmax) {
        g_string_append(text, ", as linear attention is");
        return g_string_free(text, FALSE);
    }
    g_string_append_printf(text, "%s%s%s", not_full == NULL ? ", full" : "",
                           window ? ", sliding windows" : "",
                           documents ? ", packed documents" : "");
    if (not_full != NULL)
        g_string_append_printf(text, "\n" INDENT "not full: %s", not_full);
    if (!window || !documents)
        g_string_append_printf(text, "\n" INDENT "no %s%s%s: %s", window ? "" : "windows",
                               window || documents ? "" : ", no ", documents ? "" : "documents",
                               schedule->masks_reason);
    if (lh_schedule_takes(schedule, true))
        g_string_append(text, "\n" INDENT "linear attention: causal");
    return g_string_free(text, FALSE);
}

/* Lists the options that the schedule reads, as on a command line. Caller frees. */
static char *
describe_own_options(const LhSchedule *schedule)
{
    GString *text = g_string_new(NULL);

    if (lh_schedule_takes(schedule, true))
        g_string_append(text, "--linear-decay");
    for (guint i = 0; schedule->options != NULL && schedule->options[i] != NULL; i++) {
        g_autofree char *name = g_strdelimit(g_strdup(schedule->options[i]->name), "_", '-');

        g_string_append_printf(text, "%s--%s", text->len > 0 ? ", " : "", name);
    }
    return g_string_free(text, FALSE);
}

static void
print_facts(const LhSchedule *schedule, GString *out)
{
    g_autofree char *masks = describe_masks(schedule);
    g_autofree char *own = describe_own_options(schedule);

    g_string_append_printf(out, "%s: %s\n\n%s", schedule->name, schedule->summary,
                           schedule->details);
    if (!g_str_has_suffix(schedule->details, "\n"))
        g_string_append_c(out, '\n');
    g_string_append_printf(out,
                           "\nattention    %s\nplacement    %s\nmasks        %s\n"
                           "options      %s\n",
                           lh_schedule_attention(schedule), placement_words[schedule->placement],
                           masks, own[0] != '\0' ? own : "none of its own");
}

typedef uint64_t (*RankForm)(const LhProgramParams *p, uint32_t rank);

static void
add_form(LhTable *table, const LhProgramParams *p, const char *name, RankForm form)
{
    uint64_t least = UINT64_MAX, most = 0;
    LhWide sum = 0;
    g_autofree char *low = NULL;
    g_autofree char *mean = NULL;
    g_autofree char *high = NULL;

    if (form == NULL)
        return;
    for (uint32_t rank = 0; rank < p->ranks; rank++) {
        const uint64_t value = form(p, rank);

        least = MIN(least, value);
        most = MAX(most, value);
        sum += value;
    }
    low = lh_format_count(least);
    mean = lh_format_count((sum + p->ranks / 2) / MAX(p->ranks, 1));
    high = lh_format_count(most);
    lh_table_row(table);
    lh_table_cell(table, name, NULL);
    lh_table_cell(table, low, NULL);
    lh_table_cell(table, least == most ? low : mean, NULL);
    lh_table_cell(table, high, NULL);
}

/* Idle fractions are for the forward pass, and for the causal or full mask only. */
static void
print_idle(const LhClosedForms *closed, const LhProgramParams *p, GString *out)
{
    char blocks[LH_TEXT_SIZE], flops[LH_TEXT_SIZE];

    if (!lh_mask_is_plain(&p->mask) || (closed->idle_unit == NULL && closed->idle_flops == NULL))
        return;
    g_string_append(out, "\nidle, forward, with free communication: ");
    if (closed->idle_unit != NULL)
        g_string_append_printf(out, "%s counting blocks%s",
                               lh_text_percent(closed->idle_unit(p), blocks),
                               closed->idle_flops != NULL ? ", " : "\n");
    if (closed->idle_flops != NULL)
        g_string_append_printf(out, "%s counting flops\n",
                               lh_text_percent(closed->idle_flops(p), flops));
}

static void
print_forms(const LhProgram *program, GString *out)
{
    const LhProgramParams *p = &program->params;
    const LhClosedForms *closed = program->closed;
    g_autoptr(LhTable) table = lh_table_new();

    lh_table_column(table, "form", "closed form, of a rank", NULL, false);
    lh_table_column(table, "min", "min", NULL, true);
    lh_table_column(table, "mean", "mean", NULL, true);
    lh_table_column(table, "max", "max", NULL, true);
    add_form(table, p, "bytes sent", closed->bytes_sent);
    add_form(table, p, "attention flops", closed->flops);
    add_form(table, p, "peak memory, bytes", closed->peak_bytes);
    lh_table_print(table, LH_FORMAT_TABLE, out);
    print_idle(closed, p, out);
}

/* Prints the schedule's page. If the schedule refuses the case, the reason replaces the closed
 * forms. */
static void
print_page(const LhSetup *setup, const LhSchedule *schedule, GString *out)
{
    g_autoptr(GError) refusal = NULL;
    g_autoptr(LhProgram) program = lh_setup_program(setup, schedule, &refusal);
    g_autofree char *chosen = NULL;
    gsize from;

    print_facts(schedule, out);
    g_string_append_c(out, '\n');
    from = out->len;
    lh_describe_case(setup, out);
    lh_table_words(LH_FORMAT_TABLE, out, from);
    if (program == NULL) {
        g_string_append_printf(out, "\nrefused: %s\n", refusal->message);
        return;
    }
    chosen = lh_describe_options(&program->params, &setup->params);
    if (chosen[0] != '\0')
        g_string_append_printf(out, "chosen: %s\n", chosen);
    g_string_append_c(out, '\n');
    if (program->step != NULL)
        lh_describe_step_forms(program, out);
    else
        print_forms(program, out);
}

/* --- the command --------------------------------------------------------------------------------
 */

/* Sets the number of ranks: as the options imply (--grid 2x3), or SHOW_RANKS_DEFAULT. */
static bool
default_ranks(LhScenario *s, GError **error)
{
    if (!lh_setup_ranks(s, &s->ranks, error))
        return false;
    if (s->ranks == 0)
        s->ranks = SHOW_RANKS_DEFAULT;
    return true;
}

/* Adds the argument and, for a page, the number of ranks to the scenario. */
static bool
complete_scenario(const LhCommandLine *line, GError **error)
{
    LhScenario *s = line->scenario;
    const ShowOptions *o = line->options;
    const bool sized = s->ranks != 0 || s->cluster != NULL || s->schedule_file != NULL;

    if (line->arguments->len > 0) {
        const LhSchedule *schedule = lh_schedule_find(g_ptr_array_index(line->arguments, 0), error);
        const LhField *field = lh_setting_find(lh_scenario_options(), "--schedule");

        if (schedule == NULL || !lh_scenario_set(s, field, schedule->name, error))
            return false;
    }
    if (!lh_command_check_program(line, error))
        return false;
    return sized || o->to.format > FORMAT_ABOUT || default_ranks(s, error);
}

/* Prints the page, or the program in a format; an explicit program has no page. */
static bool
print_schedule(const LhSetup *setup, int format, GString *out, GError **error)
{
    const LhSchedule *schedule = NULL;
    const LhProgram *program = setup->program;
    g_autoptr(LhProgram) made = NULL;

    if (program == NULL) {
        schedule = g_ptr_array_index(setup->schedules, 0);
        if (format == FORMAT_ABOUT) {
            print_facts(schedule, out);
            return true;
        }
        if (format == FORMAT_PAGE) {
            print_page(setup, schedule, out);
            return true;
        }
        program = made = lh_setup_program(setup, schedule, error);
        if (program == NULL) {
            g_prefix_error(error, "%s: ", schedule->name);
            return false;
        }
    }
    format = MAX(format, FORMAT_TABLE) - FORMAT_TABLE;
    if (program->step != NULL && format == LH_FORMAT_JSON) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_NO,
                            "show: the program of a file does not specify the parts of a training "
                            "step, so it cannot be written again; --format csv lists its ops");
        return false;
    }
    return format == LH_FORMAT_JSON ? lh_program_write(program, out, error)
                                    : print_matrix(program, (LhFormat)format, out, error);
}

/* Whether only a model is to be shown: no schedule is given. */
static bool
is_model_alone(const LhCommandLine *line)
{
    const LhScenario *s = line->scenario;

    return line->arguments->len == 0 && s->model != NULL && s->schedule == NULL &&
           s->schedule_file == NULL;
}

static bool
print_model(const LhScenario *s, int format, GString *out, GError **error)
{
    g_autoptr(LhModel) model = NULL;
    g_autoptr(LhTable) table = NULL;

    if (format == FORMAT_TABLE + LH_FORMAT_JSON) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE,
                            "--format json is for programs; a model is shown as table, csv or md");
        return false;
    }
    if ((model = lh_setup_load_model(s, error)) == NULL)
        return false;
    table = lh_model_table(model);
    lh_table_print(table, (LhFormat)(MAX(format, FORMAT_TABLE) - FORMAT_TABLE), out);
    return true;
}

/* Draws the setup's program, of which print_schedule() prints the page or the ops. */
static bool
draw_schedule(const LhSetup *setup, const char *path, GError **error)
{
    g_autoptr(LhProgram) made = NULL;

    if (path == NULL)
        return true;
    if (setup->program == NULL) {
        made = lh_setup_program(setup, g_ptr_array_index(setup->schedules, 0), error);
        if (made == NULL)
            return false;
    }
    return lh_schedule_figure_draw(setup, made != NULL ? made : setup->program,
                                   (LhFigureTo){ .path = path }, error);
}

static LhAnswer
run_show(const LhCommandLine *line, GError **error)
{
    const ShowOptions *o = line->options;
    g_autoptr(LhSetup) setup = NULL;
    g_autoptr(GString) out = g_string_new(NULL);

    if (is_model_alone(line)) {
        if (o->figure != NULL) {
            g_set_error_literal(error, LH_ERROR, LH_ERROR_USAGE,
                                "--figure draws a schedule or a training step; name one");
            return LH_ANSWER_FAILED;
        }
        if (!print_model(line->scenario, o->to.format, out, error))
            return LH_ANSWER_FAILED;
        return lh_command_write(&o->to, out, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
    }
    if (!complete_scenario(line, error))
        return LH_ANSWER_FAILED;
    setup = lh_setup_new(line->scenario, error);
    if (setup == NULL || !lh_setup_check_one(setup, error) ||
        !print_schedule(setup, o->to.format, out, error) || !draw_schedule(setup, o->figure, error))
        return LH_ANSWER_FAILED;
    return lh_command_write(&o->to, out, error) ? LH_ANSWER_YES : LH_ANSWER_FAILED;
}

const LhCommand lh_command_show = {
    .name = "show",
    .arguments = "[SCHEDULE] [SCENARIO] [OPTIONS]",
    .summary = "Show the description of a schedule, its steps or its program, or a model.",
    .details = "The page of a schedule ends with its closed forms (bytes, flops and memory of a\n"
               "rank): for 8 ranks, or for the case given by the options. With only a model,\n"
               "prints the model as read from its file.\n\n"
               "  longhaul show --model ./config.json\n"
               "  longhaul show zigzag\n"
               "  longhaul show zigzag --cluster hgx-h100:4 --model llama-3-8b --seq-length 512K\n"
               "  longhaul show dfa-balanced --ranks 8 --pass fwd --format table\n"
               "  longhaul show ring --ranks 4 --format json -o ring.schedule.json\n"
               "  longhaul show zigzag --ranks 8 --figure zigzag.svg\n"
               "  longhaul show zigzag --step --ranks 8 --tensor-model-parallel-size 2\n",
    .scenario = true,
    .one_program = true,
    .ignores = LH_SCENARIO_OF_SIMULATION | LH_SCENARIO_OF_COLLECTIVES | LH_SCENARIO_OF_CHANCE |
               LH_SCENARIO_OF_PROOF,
    .common = { "--schedule-file", "--model", "--cluster", "--ranks", "--seq-length", "--step",
                "--mask", "--figure", "--format", "--output" },
    .options = show_options,
    .options_size = sizeof(ShowOptions),
    .arguments_max = 1,
    .names = "schedules",
    .run = run_show,
};
