/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/job.h"

#include "base/error.h"
#include "base/escape.h"
#include "base/files/file_input.h"
#include "base/time_units.h"
#include "base/units.h"
#include "cli/fatal.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "config.h"
#include "runtime/process/processes.h"
#include "scenario/setting.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time for the other processes to receive the reason of a rejected command line. */
#define REFUSAL_US                                                                                 \
    INT64_C(5000000) /* other processes receive a rejected command line within this time ... */
#define REFUSAL_MPI_US INT64_C(60000000) /* ... with MPI, which starts all before it runs any */
#define GRACE_NS                                                                                   \
    500000000 /* less than the second that Open MPI leaves between SIGTERM and SIGKILL */
#define VALUE_SHOWN_MAX 200            /* longest value in a message, characters */
#define SUM_SHOWN 8                    /* digits of a file's SHA-256 in a message */
#define CONTENT_BYTES_MAX (64UL << 20) /* largest file that is compared */

/* ---- command lines that must agree ---- */

/* Whether the option was given. A number whose minimum is above 0 is 0 if not given. */
static bool
is_given(const LhField *field, const void *in)
{
    static const unsigned char zero[sizeof(uint64_t)];
    const void *value = (const char *)in + field->offset;

    switch (field->type) {
    case LH_FIELD_UINT:
    case LH_FIELD_UNIT:
        return field->min <= 0 || memcmp(value, zero, sizeof(zero)) != 0;
    case LH_FIELD_STRING:
    case LH_FIELD_STRINGS:
    case LH_FIELD_ARRAY:
    case LH_FIELD_UINTS:
        return *(const void *const *)value != NULL;
    case LH_FIELD_CHOICE:
        return *(const int *)value >= 0;
    default:
        return true;
    }
}

/* Returns the compared value of @field: for an input file its checksum, since hosts may keep it
 * under different paths. Caller frees. */
static char *
content_of(const LhField *field, const char *text)
{
    g_autofree char *content = NULL;
    gsize bytes;

    if (lh_options_use(field) != LH_FILE_USE_READ || !g_file_test(text, G_FILE_TEST_IS_REGULAR))
        return g_strdup(text);
    content = lh_input_read(text, CONTENT_BYTES_MAX, &bytes, NULL);
    return content == NULL
               ? g_strdup(text)
               : g_compute_checksum_for_data(G_CHECKSUM_SHA256, (const guchar *)content, bytes);
}

typedef struct {
    const LhCommandLine *line;
    GString *text;
} Sheet;

/* Appends "NAME\tCONTENT\tSHOWN\n": the compared content and the text for messages. */
static void
note_line(GString *sheet, const char *name, const char *content, const char *text)
{
    g_autofree char *compared = g_strescape(content, NULL);
    g_autofree char *shown = g_strescape(text, NULL);

    g_string_append_printf(sheet, "%s\t%s\t%s\n", name, compared, shown);
}

static void
add_to_sheet(const LhField *field, bool scenario, void *data)
{
    const Sheet *sheet = data;
    const void *in = scenario ? (const void *)sheet->line->scenario : sheet->line->options;
    g_autofree char *option = lh_setting_option(field);
    g_autoptr(GString) contents = g_string_new(NULL);
    g_autoptr(GString) shown = g_string_new(NULL);
    g_autoptr(GPtrArray) texts = NULL;
    const unsigned written = LH_FIELD_WRITTEN | LH_FIELD_UPDATED;

    if (!scenario && (field->flags & (written | LH_COMMAND_OWN)) != 0 &&
        (field->flags & LH_COMMAND_OF_ALL) == 0)
        return;
    if (!is_given(field, in)) {
        note_line(sheet->text, option, "", "");
        return;
    }
    if (!scenario && (field->flags & LH_COMMAND_OF_ALL) != 0) {
        note_line(sheet->text, option, "a file", "a file");
        return;
    }
    texts = lh_setting_texts(field, in);
    for (guint i = 0; i < texts->len; i++) {
        const char *text = g_ptr_array_index(texts, i);
        const char *said = text != NULL ? text : "yes";
        g_autofree char *content = content_of(field, said);

        g_string_append_printf(contents, "%s%s", i > 0 ? "," : "", content);
        g_string_append_printf(shown, "%s%s", i > 0 ? "," : "", said);
        if (strcmp(content, said) != 0)
            g_string_append_printf(shown, " (SHA-256 %.*s)", SUM_SHOWN, content);
    }
    note_line(sheet->text, option, contents->str, shown->str);
}

/* Returns this process's command line as lines to compare. Caller frees. */
static char *
sheet_of(const LhCommandLine *line)
{
    GString *text = g_string_new(NULL);
    Sheet sheet = { line, text };

    note_line(text, "version", LH_VERSION, LH_VERSION);
    note_line(text, "command", line->command->name, line->command->name);
    lh_options_each(line->command, add_to_sheet, &sheet);
    return g_string_free(text, FALSE);
}

/* ---- comparing ---- */

/* Ranks with equal lines. */
typedef struct {
    char *content, *shown;
    GArray *ranks; /* of uint32_t */
} Camp;

static void
free_camp(gpointer data)
{
    Camp *camp = data;

    g_free(camp->content);
    g_free(camp->shown);
    g_array_unref(camp->ranks);
    g_free(camp);
}

static void
join_camp(GPtrArray *camps, uint32_t rank, const char *content, const char *shown)
{
    Camp *camp = NULL;

    for (guint i = 0; i < camps->len && camp == NULL; i++) {
        Camp *at = g_ptr_array_index(camps, i);

        camp = strcmp(at->content, content) == 0 ? at : NULL;
    }
    if (camp == NULL) {
        camp = g_new(Camp, 1);
        *camp =
            (Camp){ g_strdup(content), g_strdup(shown), g_array_new(FALSE, FALSE, sizeof(rank)) };
        g_ptr_array_add(camps, camp);
    }
    g_array_append_val(camp->ranks, rank);
}

/* Sorts by size, smallest first; of equal sizes, the later rank first. */
static int
by_size(gconstpointer a, gconstpointer b)
{
    const GArray *x = (*(Camp *const *)a)->ranks, *y = (*(Camp *const *)b)->ranks;

    if (x->len != y->len)
        return x->len < y->len ? -1 : 1;
    return g_array_index(x, uint32_t, 0) > g_array_index(y, uint32_t, 0) ? -1 : 1;
}

/* "rank 1 has 5", "ranks 0, 2, 3 have none". */
static void
append_camp(const Camp *camp, GString *out)
{
    g_autofree char *ranks = lh_control_ranks_text(camp->ranks);

    g_string_append_printf(out, "%s %s %.*s", ranks, camp->ranks->len == 1 ? "has" : "have",
                           VALUE_SHOWN_MAX, camp->shown[0] != '\0' ? camp->shown : "none");
}

/* Sets an error that lists which ranks have which value on line @i of the sheets; returns false. */
static bool
name_difference(const GPtrArray *sheets, guint i, GError **error)
{
    g_autoptr(GPtrArray) camps = g_ptr_array_new_with_free_func(free_camp);
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *name = NULL;

    for (guint r = 0; r < sheets->len; r++) {
        char *const *lines = g_ptr_array_index(sheets, r);
        g_auto(GStrv) parts = g_strsplit(lines[i] != NULL ? lines[i] : "", "\t", -1);
        const bool whole = g_strv_length(parts) == 3;

        if (name == NULL && whole)
            name = g_strdup(parts[0]);
        join_camp(camps, r, whole ? parts[1] : "", whole ? parts[2] : "");
    }
    g_ptr_array_sort(camps, by_size);
    append_camp(g_ptr_array_index(camps, 0), text);
    g_string_append(text, ", and ");
    append_camp(g_ptr_array_index(camps, camps->len - 1), text);
    g_set_error(error, LH_ERROR, LH_ERROR_USAGE,
                "%s differs: %s; start all processes with the same options, files and version",
                name != NULL ? name : "version", text->str);
    return false;
}

/* Number of bytes of a line to compare: all before the text for messages, which has no tab. */
static gsize
compared_bytes(const char *line)
{
    const char *tab = strrchr(line, '\t');

    return tab != NULL ? (gsize)(tab - line) : strlen(line);
}

/* Whether line @i is equal on all ranks, or missing on all. */
static bool
is_same_line(const GPtrArray *sheets, guint i)
{
    const char *first = ((char *const *)g_ptr_array_index(sheets, 0))[i];
    const gsize bytes = first == NULL ? 0 : compared_bytes(first);

    for (guint r = 1; r < sheets->len; r++) {
        const char *line = ((char *const *)g_ptr_array_index(sheets, r))[i];

        if (line == NULL || first == NULL) {
            if (line != first)
                return false;
        } else if (compared_bytes(line) != bytes || memcmp(line, first, bytes) != 0) {
            return false;
        }
    }
    return true;
}

/* Compares all sheets. Every process has all of them and finds the same difference; @alike is set
 * then. */
static bool
compare_sheets(const LhProcesses *processes, const char *mine, bool *alike, GError **error)
{
    g_auto(GStrv) texts = lh_processes_texts(processes, mine, error);
    g_autoptr(GPtrArray) sheets = g_ptr_array_new_with_free_func((GDestroyNotify)g_strfreev);
    char *const *first;

    if (texts == NULL)
        return false;
    for (uint32_t r = 0; r < processes->count; r++)
        g_ptr_array_add(sheets, g_strsplit(texts[r], "\n", -1));
    first = g_ptr_array_index(sheets, 0);
    for (guint i = 0;; i++) {
        *alike = !is_same_line(sheets, i);
        if (*alike)
            return name_difference(sheets, i, error);
        if (first[i] == NULL)
            return true;
    }
}

/* ---- rendezvous ---- */

/* The control plane of the processes that run the command together; NULL: this process is alone. */
static const LhControl *
control_of(const LhCommandLine *line)
{
    const LhControl *control = line->command->control == NULL ? NULL : line->command->control(line);

    control = control == NULL ? NULL : lh_control_resolve(control);
    return control == &lh_control_single ? NULL : control;
}

static int64_t
deadline_us(const LhCommandLine *line)
{
    const LhField *field = lh_setting_find(line->command->options, "--deadline");
    const LhTime told_ps =
        *(const LhTime *)(const void *)((const char *)line->options + field->offset);

    return told_ps > 0 ? MAX(told_ps / LH_PS_PER_US, 1)
                       : (int64_t)line->command->deadline_s * LH_US_PER_S;
}

/* Joins the job and compares command lines. @alike: all processes found the same error. */
static bool
meet(const LhCommandLine *line, const LhControl *control, bool *first, bool *alike, GError **error)
{
    g_autofree char *sheet = sheet_of(line);
    LhProcesses processes;
    bool ok;

    if (!lh_processes_open(&processes, control, deadline_us(line), error))
        return false;
    *first = lh_processes_first(&processes);
    ok = compare_sheets(&processes, sheet, alike, error);
    lh_processes_close(&processes);
    return ok;
}

/* ---- errors ---- */

/* Prints the error before ending the job, since the launcher ends this process with the others. */
G_GNUC_NORETURN static void
abandon_job(const LhControl *control, int status, const char *message)
{
    g_autofree char *lines = lh_escaped_lines(message);

    fprintf(stderr, "longhaul: error: %s\n", lines);
    fflush(stderr);
    control->abandon(status);
    exit(status); /* without other processes, abandon() returns */
}

/* Ends the job: sets @error to the job's error, or ends the process with the others. Takes
 * @failure. */
static void
end_job(const LhControl *control, GError *failure, GError **error)
{
    int status = lh_answer_status(LH_ANSWER_FAILED, failure);
    g_autofree char *message = control->conclude == NULL ? g_strdup(failure->message)
                                                         : control->conclude(failure, &status);

    if (control->abandon != NULL)
        abandon_job(control, status, message);
    g_set_error_literal(error, LH_ERROR, status, message);
    g_error_free(failure);
}

/* Control plane of this process's job; NULL: no job. */
static const LhControl *own_control;

/* Signals that end this process, and their previous handlers (base/files/output.h). */
static struct {
    int number;
    const char *words;
    struct sigaction before;
} ends[] = { { .number = SIGTERM, .words = "ended by SIGTERM" },
             { .number = SIGHUP, .words = "ended by SIGHUP" },
             { .number = SIGXCPU, .words = "ended by SIGXCPU, a limit of the system" },
             { .number = SIGINT, .words = "ended by SIGINT" } };

/* Reports the signal to the other processes before it ends this one, so that they need not wait for
 * their deadlines. Waits GRACE_NS if the launcher ends all processes as soon as one ends. */
static void
end_by_signal(int number)
{
    static const struct timespec grace = { .tv_nsec = GRACE_NS };

    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (ends[i].number != number)
            continue;
        own_control->last_words(LH_ERROR_RUNTIME, ends[i].words);
        if (own_control->abandon != NULL)
            (void)nanosleep(&grace, NULL);
        (void)sigaction(number, &ends[i].before, NULL);
    }
    raise(number);
}

static void
end_without_memory(const char *text)
{
    if (own_control != NULL)
        own_control->last_words(LH_ERROR_RUNTIME, text);
}

static void
listen_for_ends(const LhControl *control)
{
    const struct sigaction action = { .sa_handler = end_by_signal, .sa_flags = SA_NODEFER };

    if (control->last_words == NULL)
        return;
    own_control = control;
    for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
        if (sigaction(ends[i].number, NULL, &ends[i].before) == 0 &&
            ends[i].before.sa_handler != SIG_IGN)
            (void)sigaction(ends[i].number, &action, NULL);
    }
    lh_fatal_tell(end_without_memory);
}

LhAnswer
lh_job_run(const LhCommandLine *line, GError **error)
{
    const LhControl *control = control_of(line);
    GError *failure = NULL;
    bool first = true, alike = false;
    LhAnswer answer = LH_ANSWER_FAILED;

    if (control == NULL)
        return lh_outputs_check(line->command, line, error) ? line->command->run(line, error)
                                                            : LH_ANSWER_FAILED;
    listen_for_ends(control);
    /* Only the first process writes; other hosts may lack its folders. */
    if (meet(line, control, &first, &alike, &failure) &&
        (!first || lh_outputs_check(line->command, line, &failure)))
        answer = line->command->run(line, &failure);
    if (failure == NULL)
        return answer;
    if (!alike)
        end_job(control, failure, error);
    else
        g_propagate_error(error, failure); /* all processes have this error */
    return answer;
}

/* Returns the value of @option in words that may not parse as a command line, borrowed; NULL:
 * none. */
static const char *
find_value(char *const *words, const char *option)
{
    const gsize length = strlen(option);

    for (; *words != NULL; words++) {
        if (strcmp(*words, option) == 0)
            return words[1];
        if (strncmp(*words, option, length) == 0 && (*words)[length] == '=')
            return *words + length + 1;
    }
    return NULL;
}

/* As control_of(), for a command line that does not parse. */
static const LhControl *
control_of_words(char *const *words)
{
    const char *backend = find_value(words, "--backend"),
               *bootstrap = find_value(words, "--bootstrap");
    const LhControl *control = &lh_control_auto;

    for (guint i = 0; backend != NULL && lh_backends[i] != NULL; i++)
        control = strcmp(lh_backends[i]->name, backend) == 0 ? lh_backends[i]->control : control;
    for (guint i = 0; bootstrap != NULL && lh_controls[i] != NULL; i++)
        control = strcmp(lh_controls[i]->name, bootstrap) == 0 ? lh_controls[i] : control;
    return lh_control_resolve(control);
}

void
lh_job_refuse(const LhCommand *command, char *const *arguments, const GError *why)
{
    const LhControl *control = command->control == NULL ? NULL : control_of_words(arguments);
    g_autoptr(GError) alone = NULL;
    LhControlPlace place;
    int64_t limit_us;
    int status;

    /* Without --backend or a launcher's environment the process is alone. */
    if (control == NULL || control->conclude == NULL ||
        (control == &lh_control_mpi && lh_control_resolve(&lh_control_auto) != control) ||
        (lh_setting_find(command->options, "--backend") != NULL &&
         find_value(arguments, "--backend") == NULL))
        return;
    limit_us = control == &lh_control_mpi ? REFUSAL_MPI_US : REFUSAL_US;
    (void)control->open(0, limit_us, &place, &alone);
    g_free(control->conclude(why, &status));
}
