{{/*
The labels of an object. The argument has `root`, and the `name` of the part to which the object belongs.
*/}}
{{- define "atoll.labels" -}}
{{- $root := .root -}}
{{- $chart := printf "%s-%s" $root.Chart.Name $root.Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" -}}
{{- $own := dict
    "app.kubernetes.io/name" .name
    "app.kubernetes.io/instance" $root.Release.Name
    "app.kubernetes.io/version" $root.Chart.AppVersion
    "app.kubernetes.io/part-of" "atoll"
    "app.kubernetes.io/managed-by" $root.Release.Service
    "helm.sh/chart" $chart -}}
{{- toYaml (merge $own $root.Values.labels) -}}
{{- end }}

{{/*
The labels by which Services, policies and the Deployment select the pods of a part. They are those of configs/kubernetes,
and never change, because the selector of a Deployment is immutable.
*/}}
{{- define "atoll.selector" -}}
app.kubernetes.io/name: {{ . }}
{{- end }}

{{/*
The port of HOST:PORT.
*/}}
{{- define "atoll.port" -}}
{{- regexFind "[0-9]+$" . -}}
{{- end }}

{{/*
The reference of an image. The argument has `root` and `image`.
*/}}
{{- define "atoll.image" -}}
{{- if .image.digest -}}
{{ .image.repository }}@{{ .image.digest }}
{{- else -}}
{{ .image.repository }}:{{ .image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end }}

{{/*
The objects of a file in `files/`, as a map with the key `objects`.
*/}}
{{- define "atoll.objects" -}}
{{- $objects := list -}}
{{- range regexSplit "(?m)^---$" . -1 -}}
{{- $objects = append $objects (fromYaml .) -}}
{{- end -}}
{{- toYaml (dict "objects" $objects) -}}
{{- end }}
