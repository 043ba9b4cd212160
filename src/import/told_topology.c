/*
 * See told_topology.h. What was measured is taken before what links and wires imply, and both
 * before what the base has; options come before all. A latency between nodes is that of a whole
 * route: what the base says of PCIe is subtracted from it. Left out: NICs that are not alike.
 */
#include "import/told_topology.h"

#include "base/error.h"
#include "import/told_draft.h"

#include <math.h>
#include <string.h>

#define TEXT_MAX 1000     /* characters of a field */
#define BASE_TEXT_MAX 600 /* of what the base says of a link */
#define NVLINK_CTAS 32    /* what shipped clusters have, where nothing is told */
#define OTHER_CTAS 2
#define HOST_GPUS_MAX 16 /* on one NVSwitch */
#define TRAY_GPUS_MAX 4  /* of an NVLink domain of several hosts */
#define GB 1e9
#define WIRE_SLACK 1.02 /* a measured rate may be above the wire's by rounding */
#define PAIR_SHARE 0.9  /* one pair of GPUs reaches less than a NIC, if less than this share */

/* What NCCL counts with for one NVLink, by compute capability (NCCL's src/graph/topo.h), GB/s. */
static const struct {
    uint64_t capability;
    double rate; /* nocheck:unit: GB/s */
} nvlink_rates[] = { { 60, 18 }, { 70, 20 }, { 80, 20 }, { 86, 12 }, { 90, 20.6 }, { 100, 40.1 } };

static const LhTold *
told(const LhToldDraft *d, LhToldKind kind)
{
    const LhTold *found = &d->told->told[kind];

    return found->known ? found : NULL;
}

/* At most @max characters of @text. */
static char *
cut(const LhToldDraft *d, const char *text, glong max)
{
    g_autofree char *piece = g_utf8_substring(text, 0, MIN(g_utf8_strlen(text, -1), max));

    return g_string_chunk_insert(d->strings, piece);
}

/* --- what is said of fields ---------------------------------------------------------------------
 */

/* Takes @value over. */
static void
note(const LhToldDraft *d, const char *path, char *value, int provenance, const char *source)
{
    const LhToldField field = { path, value, provenance, g_strdup(source) };

    g_array_append_val(d->fields, field);
}

static bool
missing(const char *path, const char *tool, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "no file says \"%s\": %s; or give --base NAME, a cluster whose fields are kept "
                "where no file says them",
                path, tool);
    return false;
}

/* Where the base has a field from. */
static const char *
from_base(const LhToldDraft *d, const char *source)
{
    g_autofree char *text = g_strdup_printf("%s: %s", d->params->base->name, source);

    return cut(d, text, BASE_TEXT_MAX);
}

/* --- links --------------------------------------------------------------------------------------
 */

/* A rate or a latency that was found. */
typedef struct {
    double value; /* nocheck:unit: bytes/s or seconds */
    int provenance;
    const char *source; /* NULL: not found */
    const char *shown;  /* the same, short */
} Found;

typedef struct {
    Found rate, latency; /* nocheck:unit: likewise */
} FoundLink;

typedef struct {
    const char *name;           /* "node.nics" */
    const char *bandwidth_path; /* nocheck:unit: "node.nics.bandwidth" */
    const char *latency_path;   /* nocheck:unit: likewise */
    const char *bandwidth_tool; /* nocheck:unit: which tool tells it */
    const char *latency_tool;   /* nocheck:unit: likewise */
    uint64_t ctas;              /* where the base says nothing */
} LinkText;

static Found
take_told(const LhTold *from)
{
    Found found = { 0 };

    if (from != NULL)
        found = (Found){ from->value, (int)from->provenance, from->source, from->source };
    return found;
}

/* What an option gives; 0: nothing. */
static Found
take_option(double value, const char *option)
{
    Found found = { 0 };

    if (value > 0)
        found = (Found){ value, LH_PROVENANCE_ASSUMED, option, option };
    return found;
}

static void
fill_ctas(LhLinkClass *link, const LhLinkClass *base, const LinkText *text)
{
    link->ctas = base != NULL ? base->ctas : text->ctas;
    link->ctas_provenance = base != NULL ? base->ctas_provenance : LH_PROVENANCE_ASSUMED;
}

/* "bandwidth: ib_write_bw (nic.txt); latency: hgx-h100: ...". */
static char *
link_source(const LhToldDraft *d, const char *bandwidth, const char *latency, bool base)
{
    g_autoptr(GString) text = g_string_new(NULL);

    if (strcmp(bandwidth, latency) == 0)
        g_string_append(text, bandwidth);
    else
        g_string_append_printf(text, "bandwidth: %s; latency: %s", bandwidth, latency);
    if (!base)
        g_string_append(text, "; ctas: assumed, as of clusters that come with longhaul");
    return cut(d, text->str, TEXT_MAX);
}

/* What the base has. */
static Found
keep_base(const LhToldDraft *d, const LhLinkClass *base, double value, int provenance)
{
    return (Found){ value, provenance, from_base(d, base->source), d->params->base->name };
}

/*
 * Fills a class of links of a rate and a latency that were found, if their source is not NULL, else
 * of @base, which may be NULL.
 */
static bool
fill_link(LhToldDraft *d, LhLinkClass *link, const LhLinkClass *base, const LinkText *text,
          FoundLink found, GError **error)
{
    Found rate = found.rate, latency = found.latency;
    const bool kept = base != NULL && base->bandwidth > 0;

    if (!kept && rate.source == NULL)
        return missing(text->bandwidth_path, text->bandwidth_tool, error);
    if (!kept && latency.source == NULL)
        return missing(text->latency_path, text->latency_tool, error);
    if (rate.source == NULL)
        rate = keep_base(d, base, base->bandwidth, base->provenance);
    if (latency.source == NULL)
        latency = keep_base(d, base, (double)base->latency_ps / (double)LH_PS_PER_S,
                            base->latency_provenance);
    link->bandwidth = rate.value;
    link->provenance = rate.provenance;
    link->latency_ps = lh_time_from_ps(latency.value * (double)LH_PS_PER_S);
    link->latency_provenance = latency.provenance;
    fill_ctas(link, kept ? base : NULL, text);
    link->source = link_source(d, rate.source, latency.source, kept);
    note(d, text->bandwidth_path, lh_format_bandwidth(link->bandwidth), link->provenance,
         rate.shown);
    note(d, text->latency_path, lh_format_time(link->latency_ps), link->latency_provenance,
         latency.shown);
    return true;
}

/* --- a node -------------------------------------------------------------------------------------
 */

static const LhTopology *
base_of(const LhToldDraft *d)
{
    return d->params->base;
}

/* NVSwitch joins more GPUs than a host has where they are of several: a base of so many is an
 * NVLink domain, and what tools print on one of its hosts is of a tray of it. */
static bool
find_trays(LhToldDraft *d, GError **error)
{
    const LhTold *gpus = told(d, LH_TOLD_GPUS), *kind = told(d, LH_TOLD_SCALE_UP);
    const LhTopology *base = base_of(d);

    d->trays = 1;
    if (base == NULL || gpus == NULL || base->scale_up != LH_SCALE_UP_SWITCH ||
        base->gpus_per_node <= HOST_GPUS_MAX || gpus->value > TRAY_GPUS_MAX ||
        (kind != NULL && kind->value != LH_SCALE_UP_SWITCH))
        return true;
    d->trays = base->gpus_per_node / (uint64_t)gpus->value;
    if (d->trays * (uint64_t)gpus->value == base->gpus_per_node)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f GPUs, a host of the NVLink domain of %" G_GUINT64_FORMAT
                " GPUs that %s is, do not divide these; give a base whose hosts are like this one",
                gpus->place, gpus->value, base->gpus_per_node, base->name);
    return false;
}

static bool
has_nvlink(const LhTopology *base)
{
    return base != NULL &&
           (base->scale_up == LH_SCALE_UP_SWITCH || base->scale_up == LH_SCALE_UP_PAIRS);
}

/* NVLinks that lead nowhere join what the base or another file says; they cannot be none. */
static bool
check_lost(const LhToldDraft *d, GError **error)
{
    const LhTold *kind = told(d, LH_TOLD_SCALE_UP);

    if (d->told->lost_nvlinks == NULL ||
        (kind != NULL ? kind->value != LH_SCALE_UP_NONE : has_nvlink(base_of(d))))
        return true;
    if (kind != NULL)
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; and there is no NVLink in %s; give files "
                    "that agree",
                    d->told->lost_nvlinks, kind->place);
    else
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; so no file says what NVLink joins: give what nvidia-smi topo -m prints as "
                    "well, or --base NAME, a cluster with NVLink whose GPUs are joined likewise",
                    d->told->lost_nvlinks);
    return false;
}

/* A number of things of a node; from the base, where no file tells it. */
static void
note_count(const LhToldDraft *d, const char *path, uint64_t count, const LhTold *from)
{
    g_autofree char *source = NULL;

    if (from != NULL && d->trays > 1)
        source = g_strdup_printf("%" G_GUINT64_FORMAT " trays of %.0f, %s", d->trays, from->value,
                                 from->source);
    note(d, path, g_strdup_printf("%" G_GUINT64_FORMAT, count), -1,
         source != NULL ? source
         : from != NULL ? from->source
                        : base_of(d)->name);
}

static bool
fill_shape(LhToldDraft *d, GError **error)
{
    static const char *const tool = "nvidia-smi topo -m and NCCL's topology XML tell it";
    static const char *const kinds[] = { "none", "nvswitch", "pairs", "memory" };
    const LhTold *gpus = told(d, LH_TOLD_GPUS), *kind = told(d, LH_TOLD_SCALE_UP);
    const LhTopology *base = base_of(d);

    if (gpus == NULL && base == NULL)
        return missing("node.gpus", tool, error);
    if (!find_trays(d, error) || !check_lost(d, error))
        return false;
    if (kind == NULL && base == NULL)
        return missing("node.scale_up.kind", tool, error);
    d->t.gpus_per_node = gpus != NULL ? (uint64_t)gpus->value * d->trays : base->gpus_per_node;
    d->t.scale_up = kind != NULL ? (int)kind->value : base->scale_up;
    note_count(d, "node.gpus", d->t.gpus_per_node, gpus);
    note(d, "node.scale_up.kind", g_strdup(kinds[d->t.scale_up]), -1,
         kind != NULL ? kind->source : base->name);
    return true;
}

/* The path of a device that stands in the file is relative to the file. */
static void
place_device(LhToldDraft *d)
{
    const char *name = d->t.device_name, *folder = d->params->folder;
    g_autofree char *path = NULL;

    if ((strchr(name, '/') == NULL && !g_str_has_suffix(name, ".json")) || folder == NULL ||
        g_path_is_absolute(name) || strcmp(folder, ".") == 0)
        return;
    path = g_canonicalize_filename(name, NULL);
    d->t.device_name = g_string_chunk_insert(d->strings, path);
}

static bool
fill_device(LhToldDraft *d, LhDevice **device, GError **error)
{
    const LhTopology *base = base_of(d);
    const LhTold *capability = told(d, LH_TOLD_CAPABILITY);

    if (d->params->device == NULL && base == NULL) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "no file says \"device\", the GPU: give --device NAME, a word of longhaul list "
                    "devices, or --base NAME, a cluster whose fields are kept where no file says "
                    "them");
        return false;
    }
    d->t.device_name = g_string_chunk_insert(
        d->strings, d->params->device != NULL ? d->params->device : base->device_name);
    *device = lh_device_load(d->t.device_name, error);
    if (*device == NULL)
        return false;
    place_device(d);
    note(d, "device", g_strdup(d->t.device_name), -1,
         d->params->device != NULL ? "--device" : base->name);
    if (capability == NULL || (*device)->compute_capability == 0 ||
        capability->value == (double)(*device)->compute_capability)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: the GPUs have compute capability %.0f, and the device %s has %" //
                G_GUINT64_FORMAT "; choose another one with --device",
                capability->place, capability->value, (*device)->name,
                (*device)->compute_capability);
    return false;
}

/* Whether messages between GPUs of a node, as measured, went over NVLink: all of a ring's did. */
static bool
over_nvlink(const LhToldDraft *d, const LhTold *peer)
{
    return d->t.scale_up == LH_SCALE_UP_SWITCH || d->t.scale_up == LH_SCALE_UP_MEMORY ||
           (d->t.scale_up == LH_SCALE_UP_PAIRS && peer->ranks == 2);
}

static Found
take_peer(const LhToldDraft *d, LhToldKind kind, bool nvlink)
{
    const LhTold *peer = told(d, kind);

    return take_told(peer != NULL && over_nvlink(d, peer) == nvlink ? peer : NULL);
}

/* What the number of links implies. */
static Found
count_nvlinks(const LhToldDraft *d, const LhDevice *device)
{
    const LhTold *links = told(d, LH_TOLD_NVLINKS);

    for (guint i = 0; links != NULL && i < G_N_ELEMENTS(nvlink_rates); i++) {
        if (nvlink_rates[i].capability == device->compute_capability) {
            g_autofree char *source =
                g_strdup_printf("%.0f links, %s, of %g GB/s, NCCL's src/graph/topo.h", links->value,
                                links->source, nvlink_rates[i].rate);

            const char *kept = g_string_chunk_insert(d->strings, source);

            return (Found){ links->value * nvlink_rates[i].rate * GB, LH_PROVENANCE_DATASHEET, kept,
                            kept };
        }
    }
    return (Found){ 0 };
}

static bool
fill_nvlink(LhToldDraft *d, const LhDevice *device, GError **error)
{
    static const LinkText text = {
        "node.scale_up",
        "node.scale_up.bandwidth",
        "node.scale_up.latency",
        "sendrecv_perf on one host tells it, and nvidia-smi topo -m does of GPUs of a compute "
        "capability whose links are known, and --nvlink-rate",
        "sendrecv_perf -b 8 on one host tells it",
        NVLINK_CTAS,
    };
    Found rate = take_option(d->params->change.nvlink_rate, "--nvlink-rate");

    if (d->t.scale_up == LH_SCALE_UP_NONE)
        return true;
    if (rate.source == NULL)
        rate = take_peer(d, LH_TOLD_PEER_RATE, true);
    if (rate.source == NULL)
        rate = count_nvlinks(d, device);
    return fill_link(d, &d->t.nvlink, base_of(d) != NULL ? &base_of(d)->nvlink : NULL, &text,
                     (FoundLink){ rate, take_peer(d, LH_TOLD_PEER_LATENCY, true) }, error);
}

static bool
is_joined(const LhToldDraft *d)
{
    return d->t.scale_up == LH_SCALE_UP_SWITCH || d->t.scale_up == LH_SCALE_UP_MEMORY ||
           d->t.gpus_per_node == 1 ||
           (d->t.scale_up == LH_SCALE_UP_PAIRS && d->t.gpus_per_node == 2);
}

/* Whether anything tells that there is more than one node. */
static bool
has_nics(const LhToldDraft *d)
{
    static const LhToldKind kinds[] = { LH_TOLD_NICS,       LH_TOLD_NIC_RATE,   LH_TOLD_NIC_LATENCY,
                                        LH_TOLD_ROUTE_RATE, LH_TOLD_RINGS_RATE, LH_TOLD_NODES };

    for (guint i = 0; i < G_N_ELEMENTS(kinds); i++) {
        if (told(d, kinds[i]) != NULL)
            return true;
    }
    return d->params->change.nics > 0 || d->params->change.nic_rate > 0 ||
           (base_of(d) != NULL && base_of(d)->nics_per_node > 0);
}

static bool
fill_pcie(LhToldDraft *d, GError **error)
{
    static const LinkText text = {
        "node.pcie",
        "node.pcie.bandwidth",
        "node.pcie.latency",
        "NCCL's topology XML tells it, and sendrecv_perf on one host where no NVLink joins all "
        "GPUs",
        "sendrecv_perf -b 8 on one host tells it, where no NVLink joins all GPUs",
        OTHER_CTAS,
    };
    const LhTopology *base = base_of(d);
    const bool kept = base != NULL && base->pcie.bandwidth > 0;
    Found rate = take_peer(d, LH_TOLD_PEER_RATE, false);
    Found latency = take_peer(d, LH_TOLD_PEER_LATENCY, false);

    if (rate.source == NULL)
        rate = take_told(told(d, LH_TOLD_PCIE_RATE));
    /* Nothing crosses it, or the base has NICs on its NVLink. */
    if (is_joined(d) && (!has_nics(d) || (base != NULL && rate.source == NULL && !kept)))
        return true;
    /* Only routes between nodes cross it there, and what they take is measured as a whole. */
    if (latency.source == NULL && !kept && is_joined(d))
        latency = (Found){ 0, LH_PROVENANCE_MEASURED, "part of the latency of the NICs",
                           "part of the latency of the NICs" };
    return fill_link(d, &d->t.pcie, kept ? &base->pcie : NULL, &text, (FoundLink){ rate, latency },
                     error);
}

/* --- NICs ---------------------------------------------------------------------------------------
 */

static bool
check_wire(const LhToldDraft *d, GError **error)
{
    const LhTold *wire = told(d, LH_TOLD_NIC_WIRE), *rate = told(d, LH_TOLD_NIC_RATE);
    g_autofree char *more = NULL;
    g_autofree char *limit = NULL;

    if (d->params->change.nic_rate > 0 || wire == NULL || rate == NULL ||
        rate->value <= WIRE_SLACK * wire->value)
        return true;
    more = lh_format_bandwidth(rate->value);
    limit = lh_format_bandwidth(wire->value);
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: the bandwidth of a NIC is %s here, more than its wire's rate, %s in "
                "%s; give files that agree",
                rate->place, more, limit, wire->place);
    return false;
}

/* The latency of a route, less that of PCIe or NVLink, which every route has as well. */
static Found
find_nic_latency(const LhToldDraft *d)
{
    const LhTold *route = told(d, LH_TOLD_ROUTE_LATENCY);
    const LhLinkClass *via = d->t.pcie.bandwidth > 0 ? &d->t.pcie : &d->t.nvlink;
    Found latency = take_told(route != NULL ? route : told(d, LH_TOLD_NIC_LATENCY));

    if (route == NULL && latency.source != NULL) {
        g_autofree char *text = g_strconcat(latency.source, ", without what NCCL adds", NULL);

        latency.source = latency.shown = g_string_chunk_insert(d->strings, text);
    }
    if (route != NULL && via->bandwidth > 0)
        latency.value = fmax(latency.value - (double)via->latency_ps / (double)LH_PS_PER_S, 0);
    return latency;
}

/* What the NICs of one GPU reach, where it has several: they count as one. */
static Found
join_nics(const LhToldDraft *d, const LhTold *one)
{
    const LhTold *joined = told(d, LH_TOLD_NICS_JOINED);
    Found found = take_told(one);

    if (joined != NULL && one != told(d, LH_TOLD_ROUTE_RATE)) {
        g_autofree char *source =
            g_strdup_printf("%.0f NICs of each GPU as one, of %s", joined->value, one->source);

        found.value *= joined->value;
        found.source = found.shown = g_string_chunk_insert(d->strings, source);
    }
    return found;
}

static Found
find_nic_rate(const LhToldDraft *d)
{
    static const LhToldKind kinds[] = { LH_TOLD_NIC_RATE, LH_TOLD_ROUTE_RATE, LH_TOLD_NIC_WIRE };
    const Found given = take_option(d->params->change.nic_rate, "--nic-rate");

    for (guint i = 0; given.source == NULL && i < G_N_ELEMENTS(kinds); i++) {
        if (told(d, kinds[i]) != NULL)
            return join_nics(d, told(d, kinds[i]));
    }
    return given;
}

/* What one pair of GPUs reaches, where a NIC reaches more. */
static void
fill_pair(LhToldDraft *d)
{
    const LhTold *route = told(d, LH_TOLD_ROUTE_RATE);
    const LhTopology *base = base_of(d);

    if (route != NULL && route->value < PAIR_SHARE * d->t.nic.bandwidth) {
        d->t.nic.pair_p2p = route->value;
        note(d, "node.nics.pair_p2p", lh_format_bandwidth(route->value), (int)route->provenance,
             route->source);
    } else if (route == NULL && base != NULL && base->nic.pair_p2p <= d->t.nic.bandwidth) {
        d->t.nic.pair_p2p = base->nic.pair_p2p;
    }
    if (base != NULL && base->nic.pair_collective <= d->t.nic.bandwidth)
        d->t.nic.pair_collective = base->nic.pair_collective;
    if (base != NULL)
        d->t.nic_overhead_ps = base->nic_overhead_ps;
}

static bool
refuse_nic_count(const LhToldDraft *d, GError **error)
{
    const LhTold *nics = told(d, LH_TOLD_NICS), *gpus = told(d, LH_TOLD_GPUS);
    g_autofree char *divisors = lh_topology_divisors(d->t.gpus_per_node);
    const char *who = d->params->change.nics > 0 ? "--nics"
                      : nics != NULL             ? nics->place
                                                 : base_of(d)->name;

    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%" G_GUINT64_FORMAT " NICs, as %s says, do not divide the %" G_GUINT64_FORMAT
                " GPUs of a node, as %s says; a topology file shares NICs evenly: say how many "
                "carry the traffic of GPUs with --nics N, and with --nic-rate what each reaches; "
                "allowed: %s",
                d->t.nics_per_node, who, d->t.gpus_per_node,
                gpus != NULL ? gpus->place : base_of(d)->name, divisors);
    return false;
}

static bool
fill_nic_count(LhToldDraft *d, GError **error)
{
    const LhTold *nics = told(d, LH_TOLD_NICS);
    const LhTopology *base = base_of(d);
    const uint64_t given = d->params->change.nics;

    if (given == 0 && nics == NULL && (base == NULL || base->nics_per_node == 0))
        return missing("node.nics.count",
                       "nvidia-smi topo -m and NCCL's topology XML tell it, where some NICs are "
                       "nearer to GPUs than others, and --nics N",
                       error);
    if (given > 0) {
        d->t.nics_per_node = given;
        note(d, "node.nics.count", g_strdup_printf("%" G_GUINT64_FORMAT, given), -1, "--nics");
    } else {
        d->t.nics_per_node = nics != NULL ? (uint64_t)nics->value * d->trays : base->nics_per_node;
        note_count(d, "node.nics.count", d->t.nics_per_node, nics);
    }
    return d->t.gpus_per_node % d->t.nics_per_node == 0 || refuse_nic_count(d, error);
}

/* NICs of one GPU, and NICs of different speeds, have no place in a topology file as they are. */
static bool
check_alike(const LhToldDraft *d, const Found *rate, GError **error)
{
    const LhTold *joined = told(d, LH_TOLD_NICS_JOINED);
    const LhTopologyChange *change = &d->params->change;

    if (d->told->unlike_nics != NULL && (change->nics == 0 || rate->source == NULL)) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s; a topology file has NICs that are alike: say how many carry the traffic "
                    "of GPUs with --nics N, and with --nic-rate what each reaches",
                    d->told->unlike_nics);
        return false;
    }
    if (joined == NULL || rate->source != NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f NICs are the nearest ones of each GPU, and no file says what one "
                "reaches; a topology file has one NIC a GPU: give a run of ib_write_bw over one of "
                "them, or with --nic-rate what those of a GPU reach together",
                joined->place, joined->value);
    return false;
}

/* Hosts of one NVLink domain send over NVLink, and those of two over NICs. */
static bool
refuse_trays(const LhTold *measured, GError **error)
{
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: a run on several hosts, and nothing in it says whether they are trays "
                "of one NVLink domain or of several; leave it out, and give ib_write_bw or "
                "--nic-rate for NICs",
                measured->place);
    return false;
}

static bool
fill_nics(LhToldDraft *d, GError **error)
{
    static const LinkText text = {
        "node.nics",
        "node.nics.bandwidth",
        "node.nics.latency",
        "ib_write_bw, sendrecv_perf on two hosts and NCCL's topology XML tell it, and --nic-rate",
        "sendrecv_perf -b 8 on two hosts tells it, and ib_write_lat",
        OTHER_CTAS,
    };
    const LhTopology *base = base_of(d);
    const Found rate = find_nic_rate(d);

    if (!has_nics(d))
        return true;
    if (d->trays > 1 &&
        (told(d, LH_TOLD_ROUTE_RATE) != NULL || told(d, LH_TOLD_ROUTE_LATENCY) != NULL))
        return refuse_trays(told(d, LH_TOLD_ROUTE_RATE) != NULL ? told(d, LH_TOLD_ROUTE_RATE)
                                                                : told(d, LH_TOLD_ROUTE_LATENCY),
                            error);
    if (!check_wire(d, error) || !check_alike(d, &rate, error) || !fill_nic_count(d, error) ||
        !fill_link(d, &d->t.nic, base != NULL ? &base->nic : NULL, &text,
                   (FoundLink){ rate, find_nic_latency(d) }, error))
        return false;
    fill_pair(d);
    if (base != NULL && rate.source == NULL && d->params->change.nics == 0)
        d->t.slower_nodes = base->slower_nodes;
    return true;
}

/* --- collectives --------------------------------------------------------------------------------
 */

static bool
fill_rings(LhToldDraft *d, GError **error)
{
    const LhTold *rings = told(d, LH_TOLD_RINGS_RATE);
    const LhTopology *base = base_of(d);
    const double nics = (double)d->t.nics_per_node * d->t.nic.bandwidth; /* nocheck:unit: bytes/s */

    if (rings == NULL) {
        d->t.collective_bandwidth = base != NULL ? base->collective_bandwidth : 0;
        d->t.collective_provenance = base != NULL ? base->collective_provenance : 0;
        d->t.collective_source = base != NULL ? base->collective_source : NULL;
        return true;
    }
    if (d->trays > 1)
        return refuse_trays(rings, error);
    if (rings->ranks != d->t.gpus_per_node) {
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: %" G_GUINT64_FORMAT " ranks ran on each host, of %" //
                    G_GUINT64_FORMAT " GPUs; give a run on all GPUs of its hosts",
                    rings->place, rings->ranks, d->t.gpus_per_node);
        return false;
    }
    d->t.nic.pair_collective = 0;
    if (rings->value >= nics)
        return true;
    d->t.collective_bandwidth = rings->value;
    d->t.collective_provenance = (int)rings->provenance;
    d->t.collective_source = rings->source;
    note(d, "node.collectives.bandwidth", lh_format_bandwidth(rings->value), (int)rings->provenance,
         rings->source);
    return true;
}

static bool
is_of_case(const LhCollectiveTimes *a, const LhCollectiveTimes *b)
{
    return a->op == b->op && a->ranks == b->ranks;
}

/* Two runs of one operation, on as many GPUs, with one version of NCCL, or with one that is not
 * known. */
static bool
check_twice(const LhToldDraft *d, guint index, GError **error)
{
    const GArray *rows = d->told->times;
    const LhCollectiveTimes *row = &g_array_index(rows, LhCollectiveTimes, index);

    for (guint i = 0; i < index; i++) {
        const LhCollectiveTimes *before = &g_array_index(rows, LhCollectiveTimes, i);

        if (!is_of_case(before, row) ||
            (before->nccl != NULL && row->nccl != NULL && strcmp(before->nccl, row->nccl) != 0))
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                    "%s: error: %s on %" G_GUINT64_FORMAT
                    " GPUs is measured here and in %s; give one of them, or runs of different "
                    "versions of NCCL",
                    (const char *)g_ptr_array_index(d->told->places, index),
                    lh_collective_names[row->op], row->ranks,
                    (const char *)g_ptr_array_index(d->told->places, i));
        return false;
    }
    return true;
}

static bool
is_replaced(const LhToldDraft *d, const LhCollectiveTimes *row)
{
    for (guint i = 0; i < d->told->times->len; i++) {
        if (is_of_case(&g_array_index(d->told->times, LhCollectiveTimes, i), row))
            return true;
    }
    return row->ranks > d->t.gpus_per_node;
}

static bool
fill_times(LhToldDraft *d, GError **error)
{
    const GArray *kept = base_of(d) != NULL ? base_of(d)->collective_times : NULL;

    for (guint i = 0; i < d->told->times->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(d->told->times, LhCollectiveTimes, i);

        if (!check_twice(d, i, error))
            return false;
        if (row->ranks > d->t.gpus_per_node) {
            g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                        "%s: error: %" G_GUINT64_FORMAT
                        " ranks ran on one host, and a node has %" //
                        G_GUINT64_FORMAT " GPUs; give files that agree",
                        (const char *)g_ptr_array_index(d->told->places, i), row->ranks,
                        d->t.gpus_per_node);
            return false;
        }
        note(d, "node.collective_times",
             g_strdup_printf("%s, %" G_GUINT64_FORMAT " GPUs, %u sizes",
                             lh_collective_names[row->op], row->ranks, row->bytes->len),
             row->provenance, row->source);
        g_array_append_val(d->times, row);
    }
    for (guint i = 0; kept != NULL && i < kept->len; i++) {
        const LhCollectiveTimes *row = &g_array_index(kept, LhCollectiveTimes, i);

        if (!is_replaced(d, row))
            g_array_append_val(d->times, row);
    }
    return true;
}

/* --- the whole ----------------------------------------------------------------------------------
 */

/* What Slurm counts are hosts: of an NVLink domain, trays. */
static bool
count_nodes(const LhToldDraft *d, const LhTold *hosts, uint64_t *nodes, GError **error)
{
    *nodes = (uint64_t)hosts->value / d->trays;
    if (*nodes * d->trays == (uint64_t)hosts->value)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: %.0f hosts are no whole number of NVLink domains of %" G_GUINT64_FORMAT
                " hosts, as %s has them",
                hosts->place, hosts->value, d->trays, base_of(d)->name);
    return false;
}

static void
keep_fabric(LhToldDraft *d)
{
    const LhTopology *base = base_of(d);

    d->t.oversubscription = 1;
    if (base == NULL)
        return;
    d->t.fabric = base->fabric;
    d->t.nodes_per_leaf = base->nodes_per_leaf;
    d->t.oversubscription = base->oversubscription;
    d->t.switch_latency_ps = base->switch_latency_ps;
    d->t.max_nodes = base->nics_per_node > 0 ? base->max_nodes : 0;
}

/* Rails are crossed inside a node. */
static bool
check_rail(const LhToldDraft *d, GError **error)
{
    const LhTold *kind = told(d, LH_TOLD_SCALE_UP);

    if (d->t.fabric != LH_FABRIC_RAIL || d->t.nics_per_node < 2 ||
        d->t.scale_up == LH_SCALE_UP_SWITCH || kind == NULL)
        return true;
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT,
                "%s: error: no NVSwitch, which the fabric \"rail\" of %s needs to cross rails; "
                "give a base of another fabric, or a topology.conf",
                kind->place, base_of(d)->name);
    return false;
}

static bool
fill_fabric(LhToldDraft *d, GError **error)
{
    const LhTold *leaf = told(d, LH_TOLD_NODES_PER_LEAF), *nodes = told(d, LH_TOLD_NODES);
    const double given = d->params->change.oversubscription;
    char digits[G_ASCII_DTOSTR_BUF_SIZE];

    keep_fabric(d);
    if (leaf != NULL) {
        d->t.fabric = LH_FABRIC_FAT_TREE;
        if (!count_nodes(d, leaf, &d->t.nodes_per_leaf, error))
            return false;
        note(d, "fabric.nodes_per_leaf", g_strdup_printf("%" G_GUINT64_FORMAT, d->t.nodes_per_leaf),
             -1, leaf->source);
    }
    if (nodes != NULL) {
        if (!count_nodes(d, nodes, &d->t.max_nodes, error))
            return false;
        note(d, "max_nodes", g_strdup_printf("%" G_GUINT64_FORMAT, d->t.max_nodes), -1,
             nodes->source);
    }
    if (given > 0) {
        d->t.oversubscription = given;
        note(d, "fabric.oversubscription", g_strdup(lh_double_to_text(given, digits)), -1,
             "--oversubscription");
    }
    if (d->t.nics_per_node == 0)
        d->t.max_nodes = 1;
    return check_rail(d, error);
}

/* Options that the topology has no place for. */
static bool
check_options(const LhToldDraft *d, GError **error)
{
    LhTopology t = d->t;
    const char *field;
    g_autofree char *reason = NULL;
    g_autofree char *option = NULL;

    t.name = (char *)(guintptr)d->params->name;
    if (told(d, LH_TOLD_RINGS_RATE) != NULL)
        t.collective_bandwidth = 0; /* what was measured was so with these NICs */
    reason = lh_topology_change_refusal(&d->params->change, &t, &field);
    if (reason == NULL)
        return true;
    option = g_strdup(field);
    g_strdelimit(option, "_", '-');
    g_set_error(error, LH_ERROR, LH_ERROR_INPUT, "--%s: %s", option, reason);
    return false;
}

/* The names of the files that were read, as many as there is room for. */
static void
fill_texts(LhToldDraft *d)
{
    static const char *const shapes[] = { "without NVLink", "on NVSwitch", "with NVLink in pairs",
                                          "that share memory" };
    g_autoptr(GString) source = g_string_new("longhaul topology: ");
    g_autofree char *description = NULL;

    if (base_of(d) != NULL)
        g_string_append_printf(source, "what no file says is of %s; ", base_of(d)->name);
    for (guint i = 0; i < d->told->sources->len; i++)
        g_string_append_printf(source, "%s%s", i == 0 ? "" : ", ",
                               (const char *)g_ptr_array_index(d->told->sources, i));
    description = g_strdup_printf("%" G_GUINT64_FORMAT " x %s %s, %" G_GUINT64_FORMAT
                                  " NICs, as a cluster's own tools print it.",
                                  d->t.gpus_per_node, d->t.device_name, shapes[d->t.scale_up],
                                  d->t.nics_per_node);
    d->t.source = cut(d, source->str, TEXT_MAX);
    d->t.description = cut(d, description, TEXT_MAX);
    d->t.name = cut(d, d->params->name, TEXT_MAX);
}

static bool
fill_draft(LhToldDraft *d, GError **error)
{
    const LhTopology *base = base_of(d);
    LhDevice *device = NULL;
    bool ok;

    ok = fill_shape(d, error) && fill_device(d, &device, error) && fill_nvlink(d, device, error) &&
         fill_pcie(d, error) && fill_nics(d, error) && fill_rings(d, error) && fill_times(d, error);
    lh_device_free(device);
    if (!ok)
        return false;
    if (base != NULL) {
        d->t.collective_lines = base->scale_up == d->t.scale_up ? base->collective_lines : NULL;
        d->t.product_slowdown = base->product_slowdown;
        d->t.attention_slowdown = base->attention_slowdown;
        d->t.slowdown_provenance = base->slowdown_provenance;
        d->t.slowdown_source = base->slowdown_source;
    }
    if (!fill_fabric(d, error) || !check_options(d, error))
        return false;
    fill_texts(d);
    return true;
}

/* What is written must be readable: rules that no field's value tells are held there. */
static bool
write_checked(const LhToldDraft *d, LhToldTopology *topology, GError **error)
{
    GString *out = g_string_new(NULL);
    g_autofree char *file = g_strdup_printf("%s.json", d->params->name);
    g_autoptr(LhTopology) again = NULL;

    lh_told_write(d, out);
    topology->length = out->len;
    topology->document = g_string_free(out, FALSE);
    again = lh_topology_parse(file, topology->document, topology->length, error);
    if (again != NULL)
        return true;
    g_prefix_error(error, "what was told makes no topology file: ");
    return false;
}

static void
clear_field(gpointer data)
{
    LhToldField *field = data;

    g_free(field->value);
    g_free(field->source);
}

LhToldTopology *
lh_told_topology(const LhToldCluster *cluster, const LhToldParams *params, GError **error)
{
    g_autoptr(LhToldTopology) topology = g_new0(LhToldTopology, 1);
    g_autoptr(GStringChunk) strings = g_string_chunk_new(TEXT_MAX);
    g_autoptr(GArray) times = g_array_new(FALSE, FALSE, sizeof(const LhCollectiveTimes *));
    LhToldDraft draft = { .told = cluster, .params = params, .strings = strings, .times = times };

    topology->fields = draft.fields = g_array_new(FALSE, FALSE, sizeof(LhToldField));
    g_array_set_clear_func(topology->fields, clear_field);
    if (!fill_draft(&draft, error) || !write_checked(&draft, topology, error))
        return NULL;
    topology->unused = lh_told_unused(&draft);
    return g_steal_pointer(&topology);
}

void
lh_told_topology_free(LhToldTopology *topology)
{
    if (topology == NULL)
        return;
    g_array_unref(topology->fields);
    g_clear_pointer(&topology->unused, g_ptr_array_unref);
    g_free(topology->document);
    g_free(topology);
}
